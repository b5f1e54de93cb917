#include "trainer/base/ranks/communicator.h"

#include "trainer/base/text/text.h"

namespace trainer {

std::string Communicator::NameOf(int rank) const { return Join("rank ", rank); }

void Communicator::Barrier() {
  float one = 1;
  AllReduce({&one, 1});
}

bool Communicator::BroadcastBool(bool own) {
  float value = rank().rank == 0 && own ? 1.0f : 0.0f;
  AllReduce({&value, 1});
  return value > 0;
}

std::string Communicator::BroadcastString(const std::string& own) {
  auto length = static_cast<float>(own.size());  // of a path, which a float holds exactly
  Broadcast({&length, 1});
  std::vector<float> numbers(static_cast<size_t>(length));
  for (size_t i = 0; i < std::min(own.size(), numbers.size()); ++i) {
    numbers[i] = static_cast<float>(static_cast<unsigned char>(own[i]));
  }
  Broadcast(numbers);
  std::string text;
  for (const float number : numbers) text += static_cast<char>(static_cast<int>(number));
  return text;
}

}  // namespace trainer

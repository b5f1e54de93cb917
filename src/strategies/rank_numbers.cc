#include "rank_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

RankNumbers::RankNumbers(const StrategySeat& seat)
    : seat_(seat), weights_(seat.objective.Weights()), averages_(seat.objective.Averages().size()) {
  VisitStates([&](float*, size_t count) { states_ += count; });
}

template <class Visit>
void RankNumbers::VisitStates(const Visit& visit) const {
  const std::vector<Param*>& params = seat_.objective.params();
  for (const std::vector<float*>& kind : seat_.rule.history()) {
    for (size_t i = 0; i < kind.size(); ++i) {
      if (kind[i] != nullptr) visit(kind[i], static_cast<size_t>(params[i]->count()));
    }
  }
}

void RankNumbers::Read(std::span<float> to) const {
  seat_.device.CopyToHost(to.data(), weights_.data(), weights_.size_bytes());
  if (to.size() == weights()) return;
  float* next = to.data() + weights();
  VisitStates([&](const float* state, size_t count) {
    seat_.device.CopyToHost(next, state, count * sizeof(float));
    next += count;
  });
}

void RankNumbers::Write(std::span<const float> from) const {
  seat_.device.CopyToDevice(weights_.data(), from.data(), weights_.size_bytes());
  if (from.size() == weights()) return;
  const float* next = from.data() + weights();
  VisitStates([&](float* state, size_t count) {
    seat_.device.CopyToDevice(state, next, count * sizeof(float));
    next += count;
  });
}

std::string BytesOf(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

void ReadNumbers(std::string_view bytes, std::span<float> numbers) {
  if (bytes.size() != numbers.size_bytes()) {
    throw Error(ErrorCode::kBadSnapshot,
                Join("the state of a rank has ", bytes.size(), " bytes, and ", numbers.size_bytes(),
                     " are expected: the snapshot is of another solver, or damaged; start from its "
                     "weights with --weights"));
  }
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) {
    throw Error(ErrorCode::kBadSnapshot, "the state of a rank holds numbers that are not finite");
  }
}

}  // namespace trainer

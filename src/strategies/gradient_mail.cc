#include "gradient_mail.h"

#include <algorithm>

namespace trainer {
namespace {

template <class T>
T* ShareArray(SharedWindow& peers, size_t count) {
  return reinterpret_cast<T*>(peers.Allocate(std::max<size_t>(1, count) * sizeof(T)));
}

}  // namespace

GradientMail::GradientMail(SharedWindow& peers, int workers, const std::vector<int>& servers,
                           size_t floats)
    : peers_(peers),
      workers_(workers),
      servers_(servers),
      floats_(floats),
      letters_(ShareArray<Letter>(peers, static_cast<size_t>(workers))),
      answered_(ShareArray<std::atomic<uint32_t>>(
          peers, static_cast<size_t>(workers * (servers.back() + 1)))),
      gradients_(ShareArray<float>(peers, static_cast<size_t>(workers) * floats)) {}

void GradientMail::Send(int worker, const UpdateRates& rates) {
  letters_[worker].rates = rates;
  letters_[worker].sent.fetch_add(1);
  for (const int server : servers_) peers_.Ring(workers_ + server);
}

bool GradientMail::IsAnswered(int worker) const {
  const uint32_t sent = letters_[worker].sent.load();
  for (const int server : servers_) {
    if (Answered(worker, server).load() != sent) return false;
  }
  return true;
}

bool GradientMail::HasMail(int worker, int server) const {
  return letters_[worker].sent.load() != Answered(worker, server).load();
}

void GradientMail::Answer(int worker, int server) {
  Answered(worker, server).fetch_add(1);
  peers_.Ring(worker);
}

}  // namespace trainer

#include "push_queue.h"

#include <algorithm>

namespace trainer {
namespace {

// Allocates an array that the ranks of this node share, at least one element, all zeros.
template <class T>
T* AllocateArray(SharedWindow& window, size_t count) {
  return reinterpret_cast<T*>(window.Allocate(std::max<size_t>(1, count) * sizeof(T)));
}

}  // namespace

PushQueue::PushQueue(SharedWindow& window, int workers, const std::vector<int>& servers,
                     size_t floats)
    : window_(window),
      workers_(workers),
      servers_(servers),
      floats_(floats),
      pushes_(AllocateArray<Push>(window, static_cast<size_t>(workers))),
      answered_(AllocateArray<std::atomic<uint32_t>>(
          window, static_cast<size_t>(workers * (servers.back() + 1)))),
      gradients_(AllocateArray<float>(window, static_cast<size_t>(workers) * floats)) {}

void PushQueue::Send(int worker, const Hyperparams& hyper) {
  pushes_[worker].hyper = hyper;
  pushes_[worker].sent.fetch_add(1);
  for (const int server : servers_) window_.Notify(workers_ + server);
}

bool PushQueue::IsAnswered(int worker) const {
  const uint32_t sent = pushes_[worker].sent.load();
  for (const int server : servers_) {
    if (Answered(worker, server).load() != sent) return false;
  }
  return true;
}

bool PushQueue::HasGradient(int worker, int server) const {
  return pushes_[worker].sent.load() != Answered(worker, server).load();
}

void PushQueue::Answer(int worker, int server) {
  Answered(worker, server).fetch_add(1);
  window_.Notify(worker);
}

}  // namespace trainer

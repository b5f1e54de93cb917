#pragma once
// The queue of gradients that workers push to parameter servers.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/ranks/shared_window.h"
#include "trainer/optim/param_updater.h"

namespace trainer {

// Has one slot per worker for a gradient, which every server of one node reads and acknowledges.
// Ranks 0 to workers - 1 are the workers, and the servers follow them.
class PushQueue {
 public:
  // `servers` are the servers of the node, and `floats` is the length of a gradient; 0 on other
  // nodes. The constructor is collective.
  PushQueue(SharedWindow& window, int workers, const std::vector<int>& servers, size_t floats);

  // Returns the place of a worker's gradient. Empty on nodes without servers of this queue.
  std::span<float> Slot(int worker) const {
    return {gradients_ + static_cast<size_t>(worker) * floats_, floats_};
  }

  // Called by the worker when its slot holds a gradient, for an update with `hyper`. Wakes the
  // servers.
  void Send(int worker, const Hyperparams& hyper);
  // Returns whether all servers have applied the worker's last gradient.
  bool IsAnswered(int worker) const;

  // Called by a server: returns whether a worker's gradient waits for it.
  bool HasGradient(int worker, int server) const;
  // Called by a server: returns the hyperparameters for the worker's gradient.
  const Hyperparams& HyperparamsOf(int worker) const { return pushes_[worker].hyper; }
  // Called by a server when it has applied the worker's gradient. Wakes the worker.
  void Answer(int worker, int server);

 private:
  struct alignas(64) Push {
    std::atomic<uint32_t> sent;
    Hyperparams hyper;
  };
  // Returns the counter of the worker's gradients that the server has applied.
  std::atomic<uint32_t>& Answered(int worker, int server) const {
    return answered_[server * workers_ + worker];
  }

  SharedWindow& window_;
  int workers_;
  std::vector<int> servers_;
  size_t floats_;
  Push* pushes_;  // by worker
  std::atomic<uint32_t>*
      answered_;  // by server, then worker: the number of the last gradient that was applied
  float* gradients_;
};

}  // namespace trainer

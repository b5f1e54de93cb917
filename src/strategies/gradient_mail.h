#pragma once
// Gradients on their way from ranks that make steps to those that hold the weights.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/ranks/shared_window.h"
#include "trainer/steps/weight_update.h"

namespace trainer {

// A place for one gradient of each worker, which every server of one machine reads and answers.
// Ranks 0 to workers - 1 are the workers, the servers follow.
class GradientMail {
 public:
  // `servers`: those of the machine. `floats`: numbers of a gradient; 0 on other machines. All
  // ranks make one at the same point.
  GradientMail(SharedWindow& peers, int workers, const std::vector<int>& servers, size_t floats);

  // Where a worker's gradient is.
  std::span<float> Place(int worker) const {
    return {gradients_ + static_cast<size_t>(worker) * floats_, floats_};
  }

  // By the worker: its place holds a gradient, for an update by `rates`.
  void Send(int worker, const UpdateRates& rates);
  // Whether all servers have applied it.
  bool IsAnswered(int worker) const;

  // By a server: whether it has not applied the gradient of a worker; by which rates to do it; that
  // it has.
  bool HasMail(int worker, int server) const;
  const UpdateRates& RatesOf(int worker) const { return letters_[worker].rates; }
  void Answer(int worker, int server);

 private:
  struct alignas(64) Letter {
    std::atomic<uint32_t> sent;
    UpdateRates rates;
  };
  std::atomic<uint32_t>& Answered(int worker, int server) const {
    return answered_[server * workers_ + worker];
  }

  SharedWindow& peers_;
  int workers_;
  std::vector<int> servers_;
  size_t floats_;
  Letter* letters_;                  // by worker
  std::atomic<uint32_t>* answered_;  // by server, then worker: the number of the last one
  float* gradients_;
};

}  // namespace trainer

#pragma once

#include <vector>

#include "node/node_all_reduce.h"
#include "node/waiter.h"
#include "progress_engine.h"

namespace trainer {

// Lets the training thread reduce, between the layers of its backward pass and while it waits.
// Within one node an all-reduce only needs the CPU. A separate thread would take cores from the
// computation and cost two wake-ups per all-reduce, while the training thread already has the cores
// and its team.
class CallerProgress final : public ProgressEngine {
 public:
  CallerProgress(NodeAllReduce& sum, Waiter& waiter) : sum_(sum), waiter_(waiter) {}

  // Only adds to the queue. The all-reduces run in Poll and WaitFor.
  void Submit(std::span<float> values) override;
  void Poll() override { Advance(UINT64_MAX); }
  void WaitFor(uint64_t count) override;

 private:
  // Continues the queue as far as it can without waiting. Returns whether the first `until`
  // all-reduces, or all, are done.
  bool Advance(uint64_t until);

  NodeAllReduce& sum_;
  Waiter& waiter_;
  std::vector<std::span<float>> waiting_;  // the queue, from next_ on; cleared when all are done
  size_t next_ = 0;
  bool running_ = false;
  uint64_t pushed_ = 0, done_ = 0;
};

}  // namespace trainer

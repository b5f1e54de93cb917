#pragma once

#include <vector>

#include "node_sum.h"
#include "pump.h"
#include "waiter.h"

namespace trainer {

// Sums are made by the thread that trains, between the layers of its backward pass and where it
// waits. Within one machine a sum is work for the processor and nothing else: a thread of its own
// would take the cores that compute, and cost two wake-ups for each sum; this one has them, and its
// team.
class OwnPump final : public Pump {
 public:
  OwnPump(NodeSum& sum, Waiter& waiter) : sum_(sum), waiter_(waiter) {}

  void Push(std::span<float> values) override;
  void Poll() override { GoOn(UINT64_MAX); }
  void WaitFor(uint64_t count) override;

 private:
  bool GoOn(uint64_t until);

  NodeSum& sum_;
  Waiter& waiter_;
  std::vector<std::span<float>> waiting_;  // from next_ on; emptied when all are done
  size_t next_ = 0;
  bool running_ = false;
  uint64_t pushed_ = 0, done_ = 0;
};

}  // namespace trainer

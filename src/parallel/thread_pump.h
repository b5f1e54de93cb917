#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>

#include "node_sum.h"
#include "pump.h"
#include "trainer/base/error/error.h"
#include "waiter.h"

namespace trainer {

// Sums are made by a thread of their own, while the other one computes: between machines they are
// waits for the most part, and one thread makes all calls of MPI.
class ThreadPump final : public Pump {
 public:
  // `while_idle` is called by the thread now and then while it has nothing to do, and returns for
  // how long it may sleep until the next call.
  ThreadPump(const NodeBlock& block, int local, NodeSum& sum,
             std::function<std::chrono::nanoseconds()> while_idle)
      : block_(block),
        local_(local),
        sum_(sum),
        while_idle_(std::move(while_idle)),
        waiter_(block, local) {}

  void Push(std::span<float> values) override;
  void Poll() override {}
  void WaitFor(uint64_t count) override;
  int64_t HiddenNs() const override { return summing_ns_ - waited_ns_; }

  // What the thread does: until Stop, after which it may be called again, or until a rank failed.
  // `fail` is told of an error here, and ends the run.
  void Serve(const std::function<void(const Error&)>& fail);
  void Stop();
  // Whether the thread that trains waits, so that its core is free.
  bool IsAwaited() const { return awaited_; }

 private:
  bool Next(std::span<float>* values);
  void RunSums();
  void Run(std::span<float> values);

  const NodeBlock& block_;
  int local_;
  NodeSum& sum_;
  std::function<std::chrono::nanoseconds()> while_idle_;
  Waiter waiter_;
  std::mutex mutex_;
  std::deque<std::span<float>> queue_;
  std::atomic<bool> stopped_{false}, awaited_{false};
  std::atomic<uint32_t> ended_{0};  // changes when a sum is done, or none will be any more
  std::atomic<uint64_t> done_{0};
  std::atomic<int64_t> summing_ns_{0};
  int64_t waited_ns_ = 0;  // of the thread that trains, while there was something to sum
  std::atomic<bool> failed_{false};
};

}  // namespace trainer

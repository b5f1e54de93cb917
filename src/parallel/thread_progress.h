#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>

#include "node/node_all_reduce.h"
#include "node/waiter.h"
#include "progress_engine.h"
#include "trainer/base/error/error.h"

namespace trainer {

// Lets a separate thread reduce while the training thread computes. Between nodes an all-reduce
// mostly waits, and one thread must make all MPI calls.
class ThreadProgress final : public ProgressEngine {
 public:
  // The thread calls `while_idle` while it has nothing to reduce. `while_idle` returns how long the
  // thread may sleep until the next call.
  ThreadProgress(const ControlBlock& block, int local, NodeAllReduce& sum,
                 std::function<std::chrono::nanoseconds()> while_idle)
      : block_(block),
        local_(local),
        sum_(sum),
        while_idle_(std::move(while_idle)),
        waiter_(block, local) {}

  void Submit(std::span<float> values) override;
  void Poll() override {}
  void WaitFor(uint64_t count) override;
  int64_t OverlappedNs() const override { return summing_ns_ - waited_ns_; }

  // Runs the loop of the thread. Returns after Stop, when it may be called again, or if a rank
  // failed. For an error on this rank, calls `fail`, which ends the run.
  void Serve(const std::function<void(const Error&)>& fail);
  // Makes Serve return after the all-reduces that are queued. Does not wait for that.
  void Stop();
  // Returns whether the training thread waits, so that its core is free.
  bool IsAwaited() const { return awaited_; }

 private:
  // Takes the oldest queued all-reduce. Returns false if the queue is empty.
  bool TakeQueued(std::span<float>* values);
  // Runs queued all-reduces until Stop. Throws what an all-reduce throws.
  void RunSums();
  // Runs one all-reduce to its end.
  void ReduceOne(std::span<float> values);

  const ControlBlock& block_;
  int local_;
  NodeAllReduce& sum_;
  std::function<std::chrono::nanoseconds()> while_idle_;
  Waiter waiter_;
  std::mutex mutex_;
  std::deque<std::span<float>> queue_;
  std::atomic<bool> stopped_{false}, awaited_{false};
  std::atomic<uint32_t> ended_{0};  // changes after each all-reduce and when the thread fails
  std::atomic<uint64_t> done_{0};
  std::atomic<int64_t> summing_ns_{0};
  int64_t waited_ns_ = 0;  // nanoseconds that the training thread waited in WaitFor
  std::atomic<bool> failed_{false};
};

}  // namespace trainer

#pragma once
// The communicator for numbers in host memory. It joins slices of gradients to buckets and
// implements everything else by all-reduces.

#include <chrono>
#include <vector>

#include "node/control_block.h"
#include "node/gradient_memory.h"
#include "progress_engine.h"
#include "trainer/base/ranks/communicator.h"

namespace trainer {

// Joins slices of gradients to buckets, which the progress engine reduces one after the other, and
// implements everything else by all-reduces.
class HostCommunicator final : public Communicator {
 public:
  // `progress` reduces what is allocated from `gradients`, and `names` is by rank. The arguments
  // must outlive the object.
  HostCommunicator(const Rank& rank, ProgressEngine& progress, RankStatus& status,
                   GradientMemory& gradients, const std::vector<std::string>& names)
      : rank_(rank), progress_(progress), status_(status), gradients_(gradients), names_(names) {}

  Rank rank() const override { return rank_; }
  void OnGradientReady(int slice, std::span<float> values) override;
  void WaitGradient(int slice) override;
  void AllReduce(std::span<float> values) override;
  std::vector<std::string> Gather(const std::string& own) override;
  std::string WhyNotTreeOrder() const override { return why_not_tree_order_; }
  std::pmr::memory_resource* gradient_memory() override { return &gradients_; }
  void Heartbeat(int iterations) override;
  std::string NameOf(int rank) const override { return names_[static_cast<size_t>(rank)]; }
  std::optional<CommStats> stats() const override {
    return CommStats{static_cast<double>(spent_) * 1e-9,
                     static_cast<double>(progress_.OverlappedNs()) * 1e-9};
  }

  // Sets what WhyNotTreeOrder returns.
  void SetWhyNotTreeOrder(std::string why) { why_not_tree_order_ = std::move(why); }
  // Sets the size at which a bucket is full. All ranks must set the same size.
  void SetBucket(size_t floats) { bucket_size_ = floats; }

  // Returns the number of buckets of the last backward pass.
  int buckets() const { return buckets_; }

 private:
  // Adds its own lifetime to spent_.
  class Spent;

  void Flush();

  Rank rank_;
  ProgressEngine& progress_;
  RankStatus& status_;
  GradientMemory& gradients_;
  const std::vector<std::string>& names_;
  int64_t spent_ = 0;  // nanoseconds
  size_t bucket_size_ = 1 << 16;
  std::span<float> bucket_;       // the open bucket, not submitted yet
  std::vector<uint64_t> sum_of_;  // by slice: the number of all-reduces after which it is reduced
  uint64_t pushed_ = 0;
  int buckets_ = 0;
  std::string why_not_tree_order_;
};

}  // namespace trainer

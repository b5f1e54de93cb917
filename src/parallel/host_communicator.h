#pragma once
// The communicator for numbers in host memory. It joins slices of gradients to buckets and
// implements everything else by all-reduces.

#include <string>
#include <vector>

#include "node/control_block.h"
#include "node/gradient_memory.h"
#include "progress_engine.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/parallel/topology.h"

namespace trainer {

// Joins slices of gradients to buckets, which the progress engine reduces one after the other, and
// implements everything else by all-reduces.
class HostCommunicator final : public Communicator {
 public:
  // `progress` reduces what is allocated from `gradients`. The arguments must outlive the object.
  HostCommunicator(const Topology& topology, ProgressEngine& progress, RankStatus& status,
                   GradientMemory& gradients)
      : topology_(topology), progress_(progress), status_(status), gradients_(gradients) {}

  Rank rank() const override { return topology_.rank; }
  void OnGradientReady(int slice, std::span<float> values) override;
  void WaitGradient(int slice) override;
  void AllReduce(std::span<float> values) override;
  std::vector<std::string> Gather(const std::string& own) override;
  std::string WhyNotTreeOrder() const override { return topology_.WhyNotTreeOrder(); }
  std::pmr::memory_resource* gradient_memory() override { return &gradients_; }
  void Heartbeat(int iterations) override;
  std::string NameOf(int rank) const override { return topology_.names[static_cast<size_t>(rank)]; }
  std::optional<CommStats> stats() const override {
    return CommStats{static_cast<double>(spent_) * 1e-9,
                     static_cast<double>(progress_.OverlappedNs()) * 1e-9};
  }

  // Sets the size at which a bucket is full. All ranks must set the same size.
  void SetBucket(size_t floats) { bucket_size_ = floats; }

 private:
  // Adds its own lifetime to spent_.
  class Spent;

  void Flush();

  const Topology& topology_;
  ProgressEngine& progress_;
  RankStatus& status_;
  GradientMemory& gradients_;
  int64_t spent_ = 0;  // nanoseconds
  size_t bucket_size_ = 1 << 16;
  std::span<float> bucket_;       // the open bucket, not submitted yet
  std::vector<uint64_t> sum_of_;  // by slice: the number of all-reduces after which it is reduced
  uint64_t pushed_ = 0;
};

}  // namespace trainer

#pragma once
// The group of a run's ranks: slices of gradients joined to buckets, and everything else as sums.

#include <chrono>
#include <vector>

#include "node_block.h"
#include "pump.h"
#include "shared_gradients.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/base/ranks/replica_watch.h"

namespace trainer {

class Exchange final : public Communicator, public ReplicaWatch {
 public:
  // All must outlive the object; `pump` and `gradients` belong together. `names`: by rank.
  Exchange(const Rank& replica, Pump& pump, RankSlot& slot, SharedGradients& gradients,
           const std::vector<std::string>& names)
      : replica_(replica), pump_(pump), slot_(slot), gradients_(gradients), names_(names) {}

  Rank replica() const override { return replica_; }
  void OnGradientReady(int slice, std::span<float> values) override;
  void WaitFor(int slice) override;
  void Sum(std::span<float> values) override;
  std::vector<std::string> Gather(const std::string& own) override;
  std::string WhyNoTree() const override { return why_no_tree_; }
  std::pmr::memory_resource* memory() override { return &gradients_; }
  void NoteProgress(int iterations) override;
  std::string NameOf(int rank) const override { return names_[static_cast<size_t>(rank)]; }
  double SecondsSpent() const override { return static_cast<double>(spent_) * 1e-9; }
  double SecondsHidden() const override { return static_cast<double>(pump_.HiddenNs()) * 1e-9; }

  // What WhyNoTree says.
  void SetWhyNoTree(std::string why) { why_no_tree_ = std::move(why); }
  // Neighbouring slices are joined until they have that many numbers. The same on each rank.
  void SetBucket(size_t floats) { bucket_size_ = floats; }

  // How many sums the last backward pass was cut into.
  int buckets() const { return buckets_; }

 private:
  // Adds the time that it lives.
  class Spent;

  void Flush();

  Rank replica_;
  Pump& pump_;
  RankSlot& slot_;
  SharedGradients& gradients_;
  const std::vector<std::string>& names_;
  int64_t spent_ = 0;  // nanoseconds
  size_t bucket_size_ = 1 << 16;
  std::span<float> bucket_;       // joined so far, not pushed yet
  std::vector<uint64_t> sum_of_;  // by slice: the number of sums after which it is done
  uint64_t pushed_ = 0;
  int buckets_ = 0;
  std::string why_no_tree_;
};

}  // namespace trainer

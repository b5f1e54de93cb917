#pragma once
// Gradient accumulation over the virtual ranks that one rank computes one after the other.

#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/net/graph.h"
#include "trainer/net/param_store.h"

namespace trainer {

// Adds gradients and losses over all virtual ranks in the order of a binary tree, and replaces
// running statistics by their mean, which is added in the same order. The result therefore has the
// same bits whichever rank computes which virtual rank. The passes of one virtual rank (iter_size)
// are first added in their order.
//
// A rank has consecutive virtual ranks: it adds the lower levels of the tree, and the communicator,
// which also adds ranks in tree order, adds the upper levels. Used by one thread.
class TreeAccumulator final : public GradientSink {
 public:
  // `graph` is the training net of `params`. The arguments must outlive the object; `group` may be
  // null.
  TreeAccumulator(const Device& device, const Graph& graph, ParamStore& params, int iter_size,
                  Communicator* group);

  // From the next evaluation on, reduces over `group`, which is null or the constructor's.
  void ReduceOver(Communicator* group) { group_ = group; }

  int virtual_ranks() const { return graph_.options.virtual_ranks; }  // of this rank
  int total() const {
    return graph_.options.virtual_ranks * (group_ == nullptr ? 1 : group_->rank().size);
  }

  // Called before and after the pass of a virtual rank (Pass::virtual_rank) in pass `pass` of the
  // iteration, in the order of passes, and within a pass in the order of virtual ranks. Requires
  // several virtual ranks, and gradients that are zero before the first call.
  void Begin(int pass, int virtual_rank);
  void End(int pass, int virtual_rank);
  // Replaces Begin and End for a forward pass without backward, which does not change gradients.
  void BeginForward(int pass, int virtual_rank);
  void EndForward(int virtual_rank);

  // Called after the last pass, with the loss of each virtual rank, if total() > 1. Returns the
  // mean loss over the virtual ranks of all ranks, and replaces running statistics by their mean.
  float Finish(std::span<const float> losses);

  // The sink of the last backward pass, in which gradients become final.
  void OnGradientReady(int slice, std::span<float> values) override;

 private:
  float* RunningStats(int virtual_rank) const {
    return averages_.data() + own_.size() * Index(virtual_rank);
  }
  static size_t Index(int i) { return static_cast<size_t>(i); }
  void Copy(const float* from, float* to, size_t count) const;
  void Carry(int levels, std::span<float> gradients) const;
  bool Adds() const { return virtual_ranks() > 1; }

  const Device& device_;
  const Graph& graph_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  std::span<float> own_;  // the net's running statistics, if it has any
  // Sums that wait for the other half of the tree; with several passes, the gradients of virtual
  // ranks.
  std::vector<DeviceFloats> levels_;
  DeviceFloats averages_;         // of each virtual rank, then the common start of the iteration
  std::vector<float> exchanged_;  // the loss, then running statistics
};

// Adds numbers in host memory in the order of the same tree: neighbours are added first.
float TreeSum(std::span<const float> values);

}  // namespace trainer

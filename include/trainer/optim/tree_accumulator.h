#pragma once
// Gradient accumulation over the virtual ranks that one rank computes one after the other.

#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/net.h"

namespace trainer {

// Adds gradients and losses as a binary tree over all virtual ranks, and replaces running averages
// by their mean, which is added in the same way. The result therefore has the same bits whichever
// rank computed which virtual rank. The passes of one virtual rank (iter_size) are added in their
// order before that. Without a communicator and with one virtual rank it does and copies nothing.
//
// A rank has consecutive virtual ranks: it adds the lower levels of the tree, and the communicator,
// which adds ranks as a tree too, the upper levels. Used by one thread.
class TreeAccumulator final : public GradientSink {
 public:
  // For the training net of `params`. The arguments must outlive the object; `group` may be null.
  TreeAccumulator(const Device& device, Net& net, ParamStore& params, int iter_size,
                  Communicator* group);

  // Replaces the communicator from the next evaluation on: null, or the constructor's.
  void ReduceOver(Communicator* group) { group_ = group; }

  int virtual_ranks() const { return net_.graph().options.virtual_ranks; }  // of this rank
  int total() const {
    return net_.graph().options.virtual_ranks * (group_ == nullptr ? 1 : group_->rank().size);
  }

  // Called before and after forward and backward of a virtual rank in pass `pass` of the iteration,
  // in the order of passes, and of virtual ranks within a pass. Gradients are zero before the first
  // call.
  void Begin(int pass, int virtual_rank);
  void End(int pass, int virtual_rank);
  // The same for a forward pass alone, which does not change gradients.
  void BeginForward(int pass, int virtual_rank);
  void EndForward(int virtual_rank);
  // The sink of a backward pass: null except for the last one, in which gradients become final.
  GradientSink* SinkOf(int pass, int virtual_rank);

  // Called after the last pass, with the loss of each virtual rank. Returns the mean over all of
  // all ranks, and replaces running averages by their mean.
  float Finish(std::span<const float> losses);

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
  Net& net_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  std::span<float> own_;  // running averages, if the net has them
  std::vector<DeviceFloats>
      levels_;             // sums that wait for their other half, or the gradients of virtual ranks
  DeviceFloats averages_;  // of each part, then what they begin an iteration with
  std::vector<float> exchanged_;  // a loss, then running averages
};

// The same tree over numbers in host memory: neighbours are added first.
float TreeSum(std::span<const float> values);

// Bytes of the gradients of a training net.
size_t GradientBytes(const Graph& graph);

// How many extra copies of all gradients a rank with `parts` virtual ranks holds, and how many
// bytes these and everything else take that it holds because it computes several.
int ExtraGradients(int virtual_ranks, int iter_size);
size_t ExtraVirtualRankBytes(const Graph& graph, int virtual_ranks, int iter_size);

}  // namespace trainer

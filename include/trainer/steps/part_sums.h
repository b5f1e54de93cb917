#pragma once
// The parts of a batch that one rank computes one after the other, and the sums over all of them.

#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/net.h"

namespace trainer {

// What an iteration's passes leave, gathered so that no bit tells which rank computed which part:
// gradients and losses are added as a binary tree over all parts, and running averages become their
// mean, added alike. A part's own passes (iter_size) are added in their order before that. Without
// a group and with one part nothing is done here, and nothing copied.
//
// A rank has neighbouring parts: its own sums are the lower levels of the tree, those of the group,
// which adds ranks as a tree too, the upper ones. Used by one thread.
class PartSums final : public GradientSink {
 public:
  // For the training net of `params`. All must outlive the object; `group` may be null.
  PartSums(const Device& device, Net& net, ParamStore& params, int iter_size, Communicator* group);

  // In place of the constructor's group from the next evaluation on: null, or the same one.
  void SumOver(Communicator* group) { group_ = group; }

  int parts() const { return net_.virtual_ranks(); }  // of this rank
  int total() const {
    return net_.virtual_ranks() * (group_ == nullptr ? 1 : group_->replica().size);
  }

  // Around forward and backward of a part in pass `pass` of the iteration, in the order of passes,
  // and of parts within a pass; gradients are zero before the first.
  void Begin(int pass, int part);
  void End(int pass, int part);
  // The same for a forward pass alone, which leaves gradients as they are.
  void BeginForward(int pass, int part);
  void EndForward(int part);
  // Who learns which gradients are final in the backward pass: null, but for the last one.
  GradientSink* SinkOf(int pass, int part);

  // After the last pass of all parts, with a loss for each: the mean over all replicas. Running
  // averages become theirs.
  float Finish(std::span<const float> losses);

  void OnGradientReady(int slice, std::span<float> values) override;

 private:
  float* RunningStats(int part) const { return averages_.data() + own_.size() * Index(part); }
  static size_t Index(int i) { return static_cast<size_t>(i); }
  void Copy(const float* from, float* to, size_t count) const;
  void Fold(int levels, std::span<float> gradients) const;
  bool Adds() const { return parts() > 1; }

  const Device& device_;
  Net& net_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  std::span<float> own_;              // running averages, where the net has them
  std::vector<DeviceFloats> levels_;  // of sums that wait for their other half, or parts' gradients
  DeviceFloats averages_;             // of each part, then what they begin an iteration with
  std::vector<float> exchanged_;      // a loss, then running averages
};

// The same tree over numbers of the host: neighbours are added first.
float TreeSum(std::span<const float> values);

// Bytes of the gradients of a training net.
size_t GradientBytes(const Net& net);

// How many copies of all gradients a rank holds for `parts` parts, and how many bytes these and all
// else take that it holds because it computes several: for a net that is perhaps only planned.
int ExtraGradients(int parts, int iter_size);
size_t ExtraPartBytes(const Net& net, int parts, int iter_size);

}  // namespace trainer

#pragma once
// The objective that training minimises: the loss of a net as a function of its weights.

#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/label_counts.h"
#include "trainer/net/net.h"
#include "trainer/optim/tree_accumulator.h"

namespace trainer {

// Runs the passes of an evaluation if this net is one stage of a larger net.
class PassSchedule {
 public:
  virtual ~PassSchedule() = default;
  // Runs `passes` forward and backward passes on the next batches, which add to the gradients of
  // this net. Returns the sum of the losses of all stages.
  virtual float Run(int passes) = 0;
  // One pass forward; returns its loss.
  virtual float RunForward() = 0;
  // The sum of a number over all stages of the net.
  virtual float SumOverStages(float own) = 0;
};

// The loss of a training net and its gradient, on a new batch or again on the last one. Over
// several ranks or virtual ranks, the loss is their mean and gradients are summed
// (tree_accumulator.h); all ranks make the same calls. Used by one thread.
class Objective {
 public:
  // A batch is `iter_size` passes of the net; more than one pass cannot be evaluated again. `group`
  // is null if this rank is the only one. All arguments must outlive the object.
  Objective(const Device& device, Net& net, ParamStore& params, int iter_size, Communicator* group);

  const Device& device() const { return device_; }
  Net& net() { return net_; }

  // From the next evaluation on losses and gradients are reduced over `group`, which is the
  // constructor's, or with null not at all.
  void ReduceOver(Communicator* group);

  // Lets `schedule` run the passes from the next evaluation on; it must outlive the object. Each
  // evaluation is on new batches, and its loss is that of all stages.
  void SetSchedule(PassSchedule& schedule) {
    schedule_ = &schedule;
    labels_ = nullptr;
  }
  bool IsStage() const { return schedule_ != nullptr; }
  // For one stage of a net: the sum of a number over all stages.
  float SumOverStages(float own) { return schedule_->SumOverStages(own); }

  // Returns the loss at the present weights, the mean over the passes. Gradients() hold the sum of
  // its gradients over the passes afterwards. Only an optimizer that Reevaluates() passes
  // NetBatch::kSame.
  float Evaluate(NetBatch batch);
  // The same without waiting for the loss if IsAsync(). TakeLoss returns the loss of the oldest
  // evaluation whose loss was not taken; at most kMaxInFlight may be in flight. Both throw what
  // Evaluate would have thrown. `fused_update`, which requires IsAsync(), is queued after the last
  // pass of a new batch: see Pass::fused_update.
  static constexpr int kMaxInFlight = 2;
  void Run(NetBatch batch, const std::function<void()>* fused_update = nullptr);
  float TakeLoss();
  bool IsAsync() const {
    return group_ == nullptr && schedule_ == nullptr && labels_ == nullptr && net_.RunsAhead();
  }
  // The loss of one pass. Does not change the gradients.
  float Loss(NetBatch batch);

  // All weights, on the device, in the order of memory, with zeros between parameters. Weights that
  // have a gradient come first: element i of Gradients() is the derivative by element i of
  // Weights(), summed over passes and ranks.
  std::span<float> Weights() { return params_.Weights(); }
  // The memory for an optimizer's state; null: the device's own.
  std::pmr::memory_resource* state_memory() const { return params_.weight_memory(); }
  // Running averages, which forward passes write: see ParamStore::RunningStats.
  std::span<float> RunningStats() { return params_.RunningStats(); }
  std::span<float> Gradients();
  float GradientScale() const;  // the factor that turns that sum into the mean
  // The parameters in the order of a snapshot; `grad` is null for one that is not learned.
  const std::vector<Param*>& params() const { return net_.params(); }

  // The number of ranges in which reduced gradients arrive: 1 without other ranks. NextReduced
  // waits for range `i` and returns it, joined with the following ranges that were reduced with it;
  // *next is the first range that was not. Called in order. Gradients() waits for all ranges.
  int NumRanges() const;
  std::span<float> NextReduced(int i, int* next);

  // Called after an update that left all gradients zero: the next evaluation need not clear them.
  void GradientsAreZero() { zero_ = true; }

  // Calls `look` after the last pass of virtual rank 0 in each evaluation, if this rank computes
  // several. The net's outputs are then those of a rank that computes virtual rank 0 alone.
  void OnFirstVirtualRank(std::function<void()> look) { look_ = std::move(look); }

  // The L2 norm of numbers on the device.
  float Norm(std::span<const float> values);

  // False if an update of several passes is the mean over the passes although the loss divides by
  // the number of counted labels: see OnlyLabelCount.
  bool PassesAreOneBatch() const { return iter_size_ == 1 || labels_ != nullptr; }

  // How many ranks or virtual ranks the sums are over.
  int NumRanks() const { return accumulator_.total(); }

  // Says whether only this rank's own updates change its weights between the first step and the
  // last, as with synchronous ranks. Called before the optimizer is prepared; true by default.
  void SetOnlyOwnUpdates(bool all) { only_own_updates_ = all; }
  // Whether the update may also write what follows from the weights (copies and averages). That
  // saves a launch on a GPU, and requires that nothing else changes the weights.
  bool UpdatesMayWriteAll() const { return device_.IsAsync() && only_own_updates_; }

 private:
  // An evaluation in flight: for each virtual rank the sum of the losses that were read so far.
  struct InFlight {
    std::vector<float> sums;
    int unread = 0;  // passes whose losses were not read
  };
  void RunPasses(NetBatch batch, const std::function<void()>* fused_update);
  void ScaleGradients(float factor);
  void RunScheduled(NetBatch batch, InFlight* evaluation);
  void Await(int i);
  void ReadPass();
  void ReadPasses();
  float TakeOldest();

  const Device& device_;
  Net& net_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  TreeAccumulator accumulator_;
  PassSchedule* schedule_ = nullptr;
  LabelCount* labels_;  // null unless an update of several passes is the mean over all their labels
  DeviceFloats norm_;
  std::array<InFlight, kMaxInFlight> in_flight_;
  int num_in_flight_ = 0;
  bool zero_ = true;  // the gradients
  int arrived_;       // ranges that were waited for
  bool only_own_updates_ = true;
  std::function<void()> look_;
};

}  // namespace trainer

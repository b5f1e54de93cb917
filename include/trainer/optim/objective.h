#pragma once
// The function that training minimises: the loss of a net as a function of its weights.

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/net/graph.h"
#include "trainer/net/label_counts.h"
#include "trainer/net/net.h"
#include "trainer/net/param_store.h"

namespace trainer {

class TreeAccumulator;

// Runs the passes of an evaluation for a net that is one stage of a pipeline.
class PassSchedule {
 public:
  virtual ~PassSchedule() = default;
  // Runs `passes` forward and backward passes on the next batches. They add to the gradients of
  // this net. Returns the sum of the losses of all stages.
  virtual float Run(int passes) = 0;
  // Runs one forward pass and returns its loss.
  virtual float RunForward() = 0;
  // Returns the sum of `own` over all stages of the net.
  virtual float SumOverStages(float own) = 0;
};

// Computes the loss of a training net and its gradient, on a new batch or again on the last one.
// With several ranks or virtual ranks the loss is their mean and gradients are their sum
// (src/optim/tree_accumulator.h); all ranks must make the same calls. Used by one thread.
class Objective {
 public:
  // A batch is `iter_size` passes of the net; a batch of several passes cannot be evaluated again.
  // `group` is null if this rank is the only one. All arguments must outlive the object.
  Objective(const Device& device, Net& net, ParamStore& params, int iter_size, Communicator* group);
  ~Objective();

  const Device& device() const { return device_; }
  Net& net() { return net_; }

  // From the next evaluation on, losses and gradients are reduced over `group`: the constructor's,
  // or null for no reduction.
  void ReduceOver(Communicator* group);

  // From the next evaluation on, `schedule` runs the passes; it must outlive the object. Each
  // evaluation is then on new batches, and its loss is the sum over all stages.
  void SetSchedule(PassSchedule& schedule) {
    schedule_ = &schedule;
    labels_ = nullptr;
  }
  bool IsStage() const { return schedule_ != nullptr; }
  // Requires IsStage(). Returns the sum of `own` over all stages.
  float SumOverStages(float own) { return schedule_->SumOverStages(own); }

  // Returns the loss at the present weights, averaged over the passes. Gradients() is then the sum
  // of the gradients over the passes. Pass::Batch::kSame requires an optimizer that Reevaluates().
  float Evaluate(Pass::Batch batch);
  // Does the same, without waiting for the loss if IsAsync(). TakeLoss returns the loss of the
  // oldest evaluation whose loss was not taken; at most kMaxInFlight may be in flight. Both throw
  // what Evaluate would have thrown. `fused_update`, which requires IsAsync(), is queued after the
  // last pass of a new batch: see Pass::fused_update.
  static constexpr int kMaxInFlight = 2;
  void Run(Pass::Batch batch, const std::function<void()>* fused_update = nullptr);
  float TakeLoss();
  bool IsAsync() const {
    return group_ == nullptr && schedule_ == nullptr && labels_ == nullptr && net_.RunsAhead();
  }
  // Runs a forward pass and returns its loss. Does not change the gradients.
  float Loss(Pass::Batch batch);

  // All weights, on the device, in the order of memory, with zeros between parameters. Weights with
  // a gradient come first: element i of Gradients() is the derivative with respect to element i of
  // Weights(), summed over passes and ranks.
  std::span<float> Weights() { return params_.Weights(); }
  // The memory for an optimizer's state; null: the device allocates it.
  std::pmr::memory_resource* state_memory() const { return params_.weight_memory(); }
  // The running statistics that forward passes write: see ParamStore::RunningStats.
  std::span<float> RunningStats() { return params_.RunningStats(); }
  std::span<float> Gradients();
  float GradientScale() const;  // turns Gradients() into the mean
  // The parameters in the order of a snapshot; `grad` is null for a parameter that is not learned.
  const std::vector<Param*>& params() const { return net_.params(); }

  // Reduced gradients arrive in NumRanges() ranges, which is 1 without other ranks. NextReduced
  // waits for range `i` and returns it, joined with the following ranges that were reduced with it;
  // *next is the first range after them. Must be called in order. Gradients() waits for all ranges.
  int NumRanges() const;
  std::span<float> NextReduced(int i, int* next);

  // Called after an update that left all gradients zero, so that the next evaluation need not clear
  // them.
  void GradientsAreZero() { zero_ = true; }

  // Calls `look` after the last forward pass of virtual rank 0 in each evaluation if this rank
  // computes several virtual ranks. The net's outputs are then the outputs of virtual rank 0.
  void OnFirstVirtualRank(std::function<void()> look) { look_ = std::move(look); }

  // Returns the L2 norm of `values`, which are on the device.
  float Norm(std::span<const float> values);

  // False if an update of several passes is the mean over the passes although the loss divides by
  // the number of counted labels: see OnlyLabelCount.
  bool PassesAreOneBatch() const { return iter_size_ == 1 || labels_ != nullptr; }

  // The number of ranks, times virtual ranks, that losses and gradients are reduced over.
  int NumRanks() const;

  // Says whether only this rank's own updates change its weights during training, as with
  // synchronous ranks. Call it before the optimizer is prepared; the default is true.
  void SetOnlyOwnUpdates(bool all) { only_own_updates_ = all; }
  // Whether an update may also write values derived from the weights (copies and averages). This
  // saves a launch on a GPU, and is possible only if nothing else changes the weights.
  bool UpdatesMayWriteAll() const { return device_.IsAsync() && only_own_updates_; }

 private:
  // An evaluation in flight: for each virtual rank the sum of the losses read so far.
  struct InFlight {
    std::vector<float> sums;
    int unread = 0;  // passes whose losses were not read yet
  };
  // Runs pass `pass` of each virtual rank of this rank.
  void RunVirtualRanks(int pass, Pass::Batch batch);
  void ScaleGradients(float factor);
  void Await(int i);
  void ReadPass();
  void ReadPasses();

  const Device& device_;
  Net& net_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  std::unique_ptr<TreeAccumulator> accumulator_;
  PassSchedule* schedule_ = nullptr;
  // Not null if an update of several passes is the mean over all their labels.
  LabelCount* labels_;
  DeviceFloats norm_;
  std::array<InFlight, kMaxInFlight> in_flight_;
  int num_in_flight_ = 0;
  bool zero_ = true;  // gradients are zero
  int arrived_;       // number of ranges that were waited for
  bool only_own_updates_ = true;
  std::function<void()> look_;
};

// Returns the bytes of the gradients of a training net.
size_t GradientBytes(const Graph& graph);

// Returns how many extra copies of all gradients the objective of a rank with several virtual ranks
// holds.
int ExtraGradients(int virtual_ranks, int iter_size);
// Returns the bytes of these copies and of everything else that the objective holds because the
// rank computes several virtual ranks.
size_t ExtraVirtualRankBytes(const Graph& graph, int virtual_ranks, int iter_size);

}  // namespace trainer

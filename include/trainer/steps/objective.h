#pragma once
// What training minimises: the loss of a net as a function of its weights.

#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/label_counts.h"
#include "trainer/net/net.h"
#include "trainer/steps/part_sums.h"

namespace trainer {

// Who runs the passes of an evaluation where this net is a part of a larger one.
class PassSchedule {
 public:
  virtual ~PassSchedule() = default;
  // Runs `passes` passes forward and backward on the next batches, which add to the gradients of
  // this net. Returns the sum of the losses of the whole net.
  virtual float Run(int passes) = 0;
  // One pass forward; returns its loss.
  virtual float RunForward() = 0;
  // The sum of a number over all parts of the net.
  virtual float SumOverParts(float own) = 0;
};

// The loss of a training net and its gradient, on a new batch or once more on the last one. Over
// several replicas, parts of this net and of other ranks', the loss is the mean of theirs and
// gradients are summed (part_sums.h); all ranks call alike. Used by one thread.
class Objective {
 public:
  // A batch is `iter_size` passes of the net; more than one cannot be evaluated again. `group` is
  // null for a run alone. All arguments must outlive the object.
  Objective(const Device& device, Net& net, ParamStore& params, int iter_size, Communicator* group);

  const Device& device() const { return device_; }
  Net& net() { return net_; }

  // From the next evaluation on losses and gradients are those of the replicas of `group`, which
  // was given to the constructor, or, with null, those of this net alone.
  void SumOver(Communicator* group);

  // From the next evaluation on; `schedule` outlives the object. Each evaluation is of new batches,
  // and its loss is that of the whole net.
  void RunBy(PassSchedule& schedule) {
    schedule_ = &schedule;
    labels_ = nullptr;
  }
  bool IsPart() const { return schedule_ != nullptr; }
  // Of a part: the sum of a number over all parts of the net.
  float SumOverParts(float own) { return schedule_->SumOverParts(own); }

  // The loss at the present weights, the mean over the passes, and its gradient: Gradients() hold
  // their sum afterwards, and nothing from before. NetBatch::kSame only for a step rule that
  // EvaluatesAgain().
  float Evaluate(NetBatch batch);
  // The same without waiting for the loss, where RunsAhead(): TakeLoss gives it, of the oldest
  // evaluation that was started and not taken, at most kAhead. Both throw what Evaluate would have
  // thrown. `then`, which only one that RunsAhead() may get, is queued behind the last pass of a
  // new batch: see Net::StartPass.
  static constexpr int kAhead = 2;
  void Start(NetBatch batch, const std::function<void()>* then = nullptr);
  float TakeLoss();
  bool RunsAhead() const {
    return group_ == nullptr && schedule_ == nullptr && labels_ == nullptr && net_.RunsAhead();
  }
  // The loss of one pass alone; leaves the gradients.
  float Loss(NetBatch batch);

  // All weights, on the device: a parameter's numbers in the order of memory, zeros between
  // parameters. Those that have a gradient come first: element i of Gradients() is the derivative
  // by element i of Weights(), times the number of passes and replicas that it sums.
  std::span<float> Weights() { return params_.Weights(); }
  // Where a rule's state is to lie; null: in the device's own memory.
  std::pmr::memory_resource* state_memory() const { return params_.weight_memory(); }
  // Running averages, which forward passes write: see ParamStore::RunningStats.
  std::span<float> RunningStats() { return params_.RunningStats(); }
  std::span<float> Gradients();
  float GradientScale() const;  // what makes the mean of that sum
  // The same parameter by parameter, in the order of a snapshot; grad is null for one that is not
  // learned.
  const std::vector<Param*>& params() const { return net_.params(); }

  // The ranges in which sums over the replicas arrive: one for a run alone. SummedRanges waits for
  // that of range `i` and returns it, joined with those behind it that have arrived as well; *next
  // is the first one that is not. To be asked for in order. Gradients() waits for all.
  int NumRanges() const;
  std::span<float> SummedRanges(int i, int* next);

  // To be called when an update left all gradients zero: saves the next Evaluate a pass over them.
  void GradientsAreZero() { zero_ = true; }

  // `look` is called after the last pass of part 0 in each evaluation, where this rank computes
  // several parts: the net's outputs are those that a rank with part 0 alone would have in the end.
  void OnFirstPart(std::function<void()> look) { look_ = std::move(look); }

  // The L2 norm of numbers on the device.
  float Norm(std::span<const float> values);

  // False if an update of several passes is the mean over the passes although the loss divides by
  // the labels that count: see OnlyLabelCount.
  bool PassesAreOneBatch() const { return iter_size_ == 1 || labels_ != nullptr; }

  // How many replicas the sums are over.
  int NumReplicas() const { return sums_.total(); }

  // Whether nothing but the updates of this rank's rule moves its weights between the first step
  // and the last, as with synchronous ranks. To be said before the rule is prepared; so it is where
  // nobody says it.
  void SetUpdatesMoveAll(bool all) { updates_move_all_ = all; }
  // Whether what follows from the weights, copies and running averages, is to be written in the
  // update: one launch less, where launches are what it costs and nothing else moves weights.
  bool UpdatesWriteAll() const { return device_.IsAsync() && updates_move_all_; }

 private:
  // An evaluation that was started: by part the sum of the losses of its passes, as far as they are
  // read.
  struct Started {
    std::vector<float> sums;
    int unread = 0;  // passes of all parts
  };
  void RunPasses(NetBatch batch, const std::function<void()>* then);
  void ScaleGradients(float factor);
  void RunScheduled(NetBatch batch, Started* started);
  void Await(int i);
  void ReadPass();
  void ReadPasses();
  float TakeOldest();

  const Device& device_;
  Net& net_;
  ParamStore& params_;
  int iter_size_;
  Communicator* group_;
  PartSums sums_;
  PassSchedule* schedule_ = nullptr;
  LabelCount* labels_;  // null unless an update of several passes is a mean over all their labels
  DeviceFloats norm_;
  std::array<Started, kAhead> started_;
  int num_started_ = 0;
  bool zero_ = true;  // the gradients
  int arrived_;       // ranges whose sums were waited for
  bool updates_move_all_ = true;
  std::function<void()> look_;
};

}  // namespace trainer

#pragma once
// One update of the parameters by an update rule: clipping, decay, local rates, the rule.

#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/param_store.h"
#include "trainer/rules/rule.h"
#include "trainer/steps/update_decision.h"

namespace trainer {

// Used by one thread. Allocates in its constructor only.
//
// An update is Begin and then Apply for disjoint ranges of the gradients until all are covered,
// each as soon as its sums over the replicas are there. Where AppliesInRanges() is false all of
// them must be there before Begin. The host waits for no number of the device: norms stay there,
// and all parameters of a range are one launch. An update of all at once can also be recorded with
// what makes its gradients, and played again: see Queue.
class WeightUpdate {
 public:
  // `gradients` is the memory of all gradients of `params`, with zeros between them: sums over
  // iter_size passes and `replicas` replicas, times decision()->loss_scale() where there is a
  // `scale`. All arguments must outlive the object. The rule's state begins at zero; it lies in
  // `memory`, where that is not null.
  WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
               const std::vector<Param*>& params, std::span<float> gradients, int replicas = 1,
               const std::optional<LossScaleOptions>& scale = std::nullopt,
               std::pmr::memory_resource* memory = nullptr);

  // Of how many replicas the gradients are sums from the next Begin on.
  void SetReplicas(int replicas) { replicas_ = replicas; }

  // From the next Begin on only the parameters with own[i] are updated, in the order of `params`.
  void SetShare(const std::vector<bool>& own);

  // From the next Begin on each update also moves the running averages of the weights, with what
  // AverageKeeps says for `decay`. In the order of `params`, on the device, which outlive the
  // object; null for a parameter that is not updated.
  void KeepAverages(const std::vector<float*>& averages, float decay);

  // From the next Begin on each update writes these copies of the weights, too: one for each of
  // `params`, see MultiTensorApply.
  void WriteCopies(const std::vector<PackedWeight>& copies);

  // Whether no parameter's update depends on another's gradient: not with clip_gradients, which
  // needs the norm of all, nor with a loss scale.
  bool AppliesInRanges() const { return !decision_; }

  // `total`, where it is not empty, makes of the sum of squares of these gradients that of all, of
  // which other ranks have a part. It is asked where AppliesInRanges() is false.
  void Begin(const UpdateRates& rates, const std::function<float(float)>& total = {});
  // Updates the parameters whose gradients are in `range`, which divides none. In Caffe's order:
  // the sum is clipped and becomes a mean, the decay is added, the rule moves the weights. The
  // gradients are zero afterwards where ClearsGradients().
  void Apply(std::span<const float> range);
  // Begin, Apply for all, and TakeNote.
  std::string Apply(const UpdateRates& rates);

  // The same in pieces: SetRates brings what is of this update alone to the device; Queue queues
  // all of the rest, the same each time, so that a device may record it; Queued says that it was
  // queued, or played again, as update `iter`.
  void SetRates(const UpdateRates& rates);
  void Queue();
  void Queued(int iter);

  // What there is to log of the last update, once: that it clipped or was skipped; else "". Waits
  // for the device where that update was queued just now.
  std::string TakeNote() { return decision_ ? decision_->TakeNote() : ""; }
  // Null where AppliesInRanges().
  UpdateDecision* decision() { return decision_ ? &*decision_ : nullptr; }

  // Not with snapshot_diff, which saves them.
  bool ClearsGradients() const { return !proto_.snapshot_diff(); }

  // Per state kind, per parameter, on the device; a parameter's state has the order of its weights.
  const std::vector<std::vector<float*>>& history() const { return history_; }

  // Bytes that an update moves at least: weights and states are read and written, gradients read
  // and set to zero.
  size_t Bytes() const;

 private:
  void MakeStates(const std::vector<Param*>& params, std::pmr::memory_resource* memory);
  void ListParameters(const std::vector<Param*>& params);
  void ListSegments();
  void Decide(const std::function<float(float)>& total);
  bool NeedsNorms() const { return proto_.larc() || rule_->NeedsNorms(); }
  void SumSquares(int first, int last);
  void AddOtherSquares(const std::function<float(float)>& total);
  void ApplyShare(int first, int last);
  void Step(int first, int last);

  const caffe::SolverParameter& proto_;
  std::unique_ptr<Rule> rule_;
  const Device& device_;
  std::span<float> gradients_;
  int replicas_;
  std::vector<DeviceFloats> states_;  // one per state kind
  std::vector<std::vector<float*>> history_;
  DeviceFloats squares_;          // the sum of those of all gradients
  DeviceFloats now_;              // RateWords
  RateWords sent_;                // what they are, but for what the rule made of them
  std::vector<float*> averages_;  // by number; or empty
  std::optional<PackedWeightList> copies_;
  float decay_ = 0;  // of the averages
  // The parameters that are updated, by the address of the gradient, and for each its multipliers
  // and, where norms are needed, the sums of squares of its gradient and its weights.
  std::optional<TensorList> parameters_;
  std::vector<size_t> numbers_of_;  // theirs among `params`
  std::vector<Param*> params_;
  std::vector<bool> others_;  // which of them other replicas update; or empty
  std::optional<DeviceFloats> mults_, grad_squares_, weight_squares_;
  std::optional<UpdateDecision> decision_;
  UpdateNumbers numbers_;
};

}  // namespace trainer

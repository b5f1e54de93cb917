#pragma once
// Updates the parameters by an update rule: clipping, unscaling, weight decay, local learning
// rates, the rule and averages of the weights.

#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/net/param_store.h"
#include "trainer/optim/loss_scaler.h"
#include "trainer/optim/update_rule.h"

namespace trainer {

// Used by one thread. Allocates in its constructor only.
//
// An update is Begin and then Apply for disjoint ranges of the gradients until all are covered,
// each as soon as it is reduced over the ranks. If AppliesInRanges() is false, all gradients must
// be reduced before Begin. The host waits for no number: norms stay on the device, and all
// parameters of a range are one launch. An update of all parameters at once can also be recorded
// together with the passes and replayed: see Queue.
class ParamUpdater {
 public:
  // `gradients` is the memory of all gradients of `params`, with zeros between them: sums over
  // iter_size passes and `ranks` ranks, times decision()->loss_scale() if there is a `scale`. All
  // arguments must outlive the object. The rule's state is zero at first; it is allocated from
  // `memory` unless that is null.
  ParamUpdater(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule, const Device& device,
               const std::vector<Param*>& params, std::span<float> gradients, int ranks = 1,
               const std::optional<LossScaleOptions>& scale = std::nullopt,
               std::pmr::memory_resource* memory = nullptr);

  // From the next Begin on gradients are sums over so many ranks.
  void SetRanks(int ranks) { ranks_ = ranks; }

  // From the next Begin on updates only the parameters with own[i], in the order of `params`.
  void UpdateOnly(const std::vector<bool>& own);

  // From the next Begin on each update also moves averages of the weights, by the factor
  // EmaKeep(decay, ...). The averages are on the device, in the order of `params`, and must outlive
  // the object; null for a parameter that is not updated.
  void FuseEma(const std::vector<float*>& ema, float decay);

  // From the next Begin on each update writes these copies of the weights, too: one for each of
  // `params`, see MultiTensorApply.
  void WritePackedWeights(const std::vector<PackedWeight>& copies);

  // Whether each parameter's update depends on its own gradient only. False with clip_gradients,
  // which needs the norm of all gradients, and with a loss scale.
  bool AppliesInRanges() const { return !decision_; }

  // `total`, if not empty, turns the sum of squares of this rank's gradients into the sum over all
  // stages of the net. It is called if AppliesInRanges() is false.
  void Begin(const Hyperparams& hyper, const std::function<float(float)>& total = {});
  // Updates the parameters whose gradients are in `range`, which contains each parameter completely
  // or not at all. In Caffe's order: the sum is clipped and divided, the weight decay is added, the
  // rule moves the weights. The gradients are zero afterwards if ClearsGradients().
  void Apply(std::span<const float> range);
  // Begin, Apply for all parameters, and TakeNote.
  std::string Apply(const Hyperparams& hyper);

  // The same in three steps: SetHyperparams writes what differs between updates to the device;
  // Queue queues the rest, which is the same each time, so that a device may record it; Queued says
  // that it was queued or replayed as update `iter`.
  void SetHyperparams(const Hyperparams& hyper);
  void Queue();
  void Queued(int iter);

  // A line for the log about the last update, returned once: it was clipped or skipped; else "".
  // Waits for the device if that update was queued just now.
  std::string TakeNote() { return decision_ ? decision_->TakeNote() : ""; }
  // Null if AppliesInRanges().
  LossScaler* decision() { return decision_ ? &*decision_ : nullptr; }

  // Not with snapshot_diff, which saves them.
  bool ClearsGradients() const { return !proto_.snapshot_diff(); }

  // Per state kind, per parameter, on the device; a parameter's state has the order of its weights.
  const std::vector<std::vector<float*>>& state_arrays() const { return state_arrays_; }

  // The least number of bytes that an update moves: weights and states are read and written,
  // gradients are read and set to zero.
  size_t Bytes() const;

 private:
  void MakeStates(const std::vector<Param*>& params, std::pmr::memory_resource* memory);
  void ListParameters(const std::vector<Param*>& params);
  void ListSegments();
  void Decide(const std::function<float(float)>& total);
  bool NeedsNorms() const { return proto_.larc() || rule_->NeedsNorms(); }
  void SumSquares(int first, int last);
  void AddOtherSquares(const std::function<float(float)>& total);
  void ApplyOwn(int first, int last);
  void Step(int first, int last);

  const caffe::SolverParameter& proto_;
  std::unique_ptr<UpdateRule> rule_;
  const Device& device_;
  std::span<float> gradients_;
  int ranks_;
  std::vector<DeviceFloats> states_;  // one per state kind
  std::vector<std::vector<float*>> state_arrays_;
  DeviceFloats squares_;       // the sum of those of all gradients
  DeviceFloats device_hyper_;  // DeviceHyperparams
  DeviceHyperparams sent_;     // what they are, but for what the rule made of them
  std::vector<float*> ema_;    // by number; or empty
  std::optional<PackedWeightList> copies_;
  float decay_ = 0;  // of the averages
  // The parameters that are updated, by the address of the gradient, and for each its multipliers
  // and, where norms are needed, the sums of squares of its gradient and its weights.
  std::optional<TensorList> parameters_;
  std::vector<size_t> numbers_of_;  // theirs among `params`
  std::vector<Param*> params_;
  std::vector<bool> others_;  // which of them other replicas update; or empty
  std::optional<DeviceFloats> multipliers_, grad_squares_, weight_squares_;
  std::optional<LossScaler> decision_;
  UpdateArgs args_;
};

}  // namespace trainer

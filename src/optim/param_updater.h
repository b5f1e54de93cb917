#pragma once
// Updates the parameters by an update rule, with gradient clipping, loss unscaling, weight decay,
// layer-wise learning rates (larc) and averages of the weights.

#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loss_scaler.h"
#include "trainer/backend/memory/device_array.h"
#include "trainer/net/param_store.h"
#include "update_rule.h"

namespace trainer {

// Used by one thread. Allocates in its constructor and in the setters only.
//
// An update is Begin, then Apply for disjoint ranges of the gradients until all are covered; a
// range may be applied as soon as it is reduced over the ranks. If AppliesInRanges() is false, all
// gradients must be reduced before Begin. The host does not wait for the device (except for
// `total`): norms stay on the device, and all parameters of a range are updated by one launch. An
// update of all parameters at once can also be captured together with the passes and replayed: see
// Queue.
class ParamUpdater {
 public:
  // `gradients` is the memory of all gradients of `params`, with zeros between them. They are sums
  // over iter_size passes and `ranks` ranks, multiplied by decision()->loss_scale() if there is a
  // `scale`. All arguments must outlive the object. The rule's state starts as zeros; it is
  // allocated from `memory` unless that is null.
  ParamUpdater(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule, const Device& device,
               const std::vector<Param*>& params, std::span<float> gradients, int ranks = 1,
               const std::optional<LossScaleOptions>& scale = std::nullopt,
               std::pmr::memory_resource* memory = nullptr);

  // From the next Begin on, gradients are sums over `ranks` ranks.
  void SetRanks(int ranks) { ranks_ = ranks; }

  // From the next Begin on, updates only the parameters with own[i], in the order of `params`.
  void UpdateOnly(const std::vector<bool>& own);

  // From the next Begin on, each update also updates averages of the weights with the decay factor
  // EmaKeep(decay, ...). The averages are on the device, in the order of `params`, and must outlive
  // the object; the pointer of a parameter that is not updated is null.
  void FuseEma(const std::vector<float*>& ema, float decay);

  // From the next Begin on, each update also writes these copies of the weights, one for each of
  // `params`: see MultiTensorApply.
  void WritePackedWeights(const std::vector<PackedWeight>& copies);

  // Returns true if each parameter's update depends on its own gradient only. False with
  // clip_gradients, which needs the norm of all gradients, and with a loss scale.
  bool AppliesInRanges() const { return !decision_; }

  // Begins an update: writes the hyperparameters to the device and computes what depends on all
  // gradients together. `total`, if not empty, is called if AppliesInRanges() is false: it receives
  // the sum of squares of this stage's gradients and returns the sum over all stages of the net.
  void Begin(const Hyperparams& hyper, const std::function<float(float)>& total = {});
  // Updates the parameters whose gradients are in `range`; a parameter must be in it completely or
  // not at all. Computes in Caffe's order: clips and averages the gradient, adds the weight decay,
  // applies the rule. Gradients are zero afterwards if ClearsGradients().
  void Apply(std::span<const float> range);
  // Calls Begin, Apply for all parameters, and TakeNote.
  std::string Apply(const Hyperparams& hyper);

  // The next three calls are an update in three parts, so that a device can capture it. This one
  // writes the values that change between updates to the device.
  void SetHyperparams(const Hyperparams& hyper);
  // Enqueues the update of all parameters, with the same kernels each time.
  void Queue();
  // Must be called after Queue, or after a replay of it, with the number of the update: starts to
  // copy the verdict to the host.
  void Queued(int iter);

  // Returns a log line if the last update was clipped or skipped, once; else "". Waits for the
  // device if that update was queued just now.
  std::string TakeNote() { return decision_ ? decision_->TakeNote() : ""; }
  // Null if AppliesInRanges().
  LossScaler* decision() { return decision_ ? &*decision_ : nullptr; }

  // False with snapshot_diff, because snapshots then contain the gradients.
  bool ClearsGradients() const { return !proto_.snapshot_diff(); }

  // [state kind][parameter], on the device. A parameter's state has the order of its weights.
  const std::vector<std::vector<float*>>& state_arrays() const { return state_arrays_; }

  // The least number of bytes that an update moves: weights and states are read and written,
  // gradients are read and cleared.
  size_t Bytes() const;

 private:
  // Allocates the rule's state, one array per kind.
  void MakeStates(const std::vector<Param*>& params, std::pmr::memory_resource* memory);
  // Lists the learned parameters in the order of their gradients' addresses, with their
  // multipliers.
  void ListParameters(const std::vector<Param*>& params);
  // Lists the arrays of each parameter for the kernels: weights, gradient, average, states.
  void ListSegments();
  // Enqueues what depends on all gradients together (the verdict and, for it, the norms), and the
  // rule's terms. If there is a verdict, the gradients are clipped by clip_value after it.
  void Decide(const std::function<float(float)>& total);
  // Limits each gradient's size to clip_value, if the solver gives it.
  void Clip(std::span<float> gradients);
  bool NeedsNorms() const { return proto_.larc() || rule_->NeedsNorms(); }
  // Computes the norms' squares of the parameters [first, last), in the order of parameters_.
  void SumSquares(int first, int last);
  // Replaces the sum of squares of this stage's gradients by the sum over all stages, on the host.
  void AddOtherSquares(const std::function<float(float)>& total);
  // Updates this rank's parameters among [first, last) and clears the gradients of the others.
  void ApplyOwn(int first, int last);
  // Applies the rule to the parameters [first, last) in one launch.
  void StepRange(int first, int last);

  const caffe::SolverParameter& proto_;
  std::unique_ptr<UpdateRule> rule_;
  const Device& device_;
  std::span<float> gradients_;
  int ranks_;
  std::vector<DeviceFloats> states_;  // one per state kind
  std::vector<std::vector<float*>> state_arrays_;
  DeviceFloats squares_;       // sum of the squares of all gradients
  DeviceFloats device_hyper_;  // a DeviceHyperparams
  DeviceHyperparams sent_;     // the content of device_hyper_ except rule_terms
  std::vector<float*> ema_;    // in the order of params_; empty without averages
  std::optional<PackedWeightList> copies_;
  float decay_ = 0;  // decay factor of the averages
  // The parameters that are updated, in the order of their gradients' addresses, and for each its
  // multipliers and, if norms are needed, the sums of squares of its gradient and its weights.
  std::optional<TensorList> parameters_;
  std::vector<size_t> numbers_of_;  // index in params_ of each of parameters_
  std::vector<Param*> params_;
  std::vector<bool> others_;  // by index in parameters_: another rank updates it; or empty
  std::optional<DeviceFloats> multipliers_, grad_squares_, weight_squares_;
  std::optional<LossScaler> decision_;
  UpdateArgs args_;
};

}  // namespace trainer

#pragma once
// One update of the parameters by an update rule: clipping, decay, local rates, the rule.

#include <functional>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/device_floats.h"
#include "trainer/net/param_store.h"
#include "trainer/rules/rule.h"

namespace trainer {

// What the solver's policies say of one update.
struct UpdateRates {
  int iter = 0;  // updates done before this one
  float rate = 0, momentum = 0, weight_decay = 0;
};

// Used by one thread. Allocates in its constructor only.
//
// An update is Begin and then Apply for disjoint ranges of the gradients until all are covered,
// each as soon as its sums over the replicas are there. Where AppliesInRanges() is false all of
// them must be there before Begin.
class WeightUpdate {
 public:
  // `gradients` is the memory of all gradients of `params`, with zeros between them: sums over
  // iter_size passes and `replicas` replicas. All arguments must outlive the object. The rule's
  // state begins at zero; it lies in `memory`, where that is not null.
  WeightUpdate(const SolverSpec& spec, std::unique_ptr<Rule> rule, const Device& device,
               const std::vector<Param*>& params, std::span<float> gradients, int replicas = 1,
               std::pmr::memory_resource* memory = nullptr);

  // Of how many replicas the gradients are sums from the next Begin on.
  void SetReplicas(int replicas) { replicas_ = replicas; }

  // From the next Begin on only the parameters with own[i] are updated, in the order of `params`.
  void SetShare(const std::vector<bool>& own);

  // Whether no parameter's update depends on another's gradient: not with clip_gradients, which
  // needs the norm of all.
  bool AppliesInRanges() const { return proto_.clip_gradients() < 0; }

  // Returns what to log when it clipped, else "". `total`, where it is not empty, makes of the sum
  // of squares of these gradients that of all, of which other ranks have a part.
  std::string Begin(const UpdateRates& rates, const std::function<float(float)>& total = {});
  // Updates the parameters whose gradients are in `range`, which divides none. In Caffe's order:
  // the sum is clipped and becomes a mean, the decay is added, the rule moves the weights. The
  // gradients are zero afterwards where ClearsGradients().
  void Apply(std::span<const float> range);
  // Begin, and Apply for all.
  std::string Apply(const UpdateRates& rates);

  // Not with snapshot_diff, which saves them.
  bool ClearsGradients() const { return !proto_.snapshot_diff(); }

  // Per state kind, per parameter, on the device; a parameter's state has the order of its weights.
  const std::vector<std::vector<float*>>& history() const { return history_; }

  // Bytes that an update moves at least: weights and states are read and written, gradients read
  // and set to zero.
  size_t Bytes() const;

 private:
  // A parameter that is updated, and its number among all.
  struct Entry {
    const Param* param;
    size_t number;
  };

  float ClipFactor(const std::function<float(float)>& total, std::string* note);
  bool NeedsNorms() const { return proto_.larc() || rule_->NeedsNorms(); }
  bool ReadsTogether() const { return NeedsNorms() && device_.RunsLater(); }
  void SumSquares(size_t first, size_t last);
  void ReadSquares(size_t first, size_t last);
  void Step(size_t entry);
  void LeaveToOthers(size_t entry);
  float LocalRate(const ParamSlice& slice, float lr_mult) const;

  const caffe::SolverParameter& proto_;
  std::unique_ptr<Rule> rule_;
  const Device& device_;
  std::span<float> gradients_;
  int replicas_;
  std::vector<Entry> entries_;        // by the address of the gradient
  std::vector<bool> others_;          // by entry: whether another replica updates it; or empty
  std::vector<DeviceFloats> states_;  // one per state kind
  std::vector<std::vector<float*>> history_;
  // Sums of squares: of entry i's weights at 2 i and its gradients at 2 i + 1; then of all
  // gradients.
  DeviceFloats squares_;
  std::vector<float> host_squares_;
  UpdateRates rates_;  // of this update
  float clip_ = 1;
};

}  // namespace trainer

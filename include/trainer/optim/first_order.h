#pragma once
// First-order optimizers: one evaluation on a new batch, then one update by an update rule.

#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "trainer/net/packed_weights.h"
#include "trainer/optim/optimizer.h"

namespace trainer {

class ParamUpdater;
class UpdateRule;

// The optimizer of all update rules: SGD, Adam and the others in src/optim/rules/. With
// `host_memory` the update is offloaded: the CPU applies the rule to weights and state in that
// memory, while the net, on another device, has a copy of the weights. Update does not change that
// copy; PullWeights updates it when all ranks have updated their parameters.
class FirstOrderOptimizer : public Optimizer {
 public:
  // Applies the rule that the solver's `type` names; throws kConfig for an unknown type. Ranks may
  // share `host_memory`: then all of them make the same calls. `spec` and `host_memory` must
  // outlive the object.
  explicit FirstOrderOptimizer(const SolverSpec& spec,
                               std::pmr::memory_resource* host_memory = nullptr);
  ~FirstOrderOptimizer() override;

  // Copies the net's weights to the host's. Requires an offloaded update.
  void PushWeights();
  // Copies the host's weights to the net's. Requires an offloaded update.
  void PullWeights();

  int StatesPerWeight() const override { return states_; }
  // Throws kUnavailable for a net whose loss must be scaled if the update is offloaded.
  void Prepare(Objective& objective, NoteHandler on_note) override;
  void ComputeGradients(const Hyperparams& hyper, bool fused) override;
  float TakeLoss() override { return objective_->TakeLoss(); }
  void Update(const Hyperparams& hyper) override;
  void EmitNotes(bool wait) override;
  bool UpdateOnly(const std::vector<bool>& own, bool unscaled) override;
  // Returns false if the update is offloaded.
  bool FuseEma(const std::vector<float*>& averages, float decay) override;
  std::optional<LossScaleState> LossScale() override;
  void RestoreLossScale(const LossScaleState& state) override;
  const std::vector<std::vector<float*>>& state_arrays() const override;
  const ParamStore* state_store() const override;
  size_t Bytes() const override;

 protected:
  // Applies `rule`.
  FirstOrderOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                      std::pmr::memory_resource* host_memory = nullptr);
  const SolverSpec& spec() const { return spec_; }

 private:
  class HostParams;

  const SolverSpec& spec_;
  std::unique_ptr<UpdateRule> rule_;  // until it is the updater's
  std::pmr::memory_resource* host_memory_;
  int states_;  // per weight, on the net's device
  Objective* objective_ = nullptr;
  NoteHandler on_note_;
  std::unique_ptr<HostParams> host_;      // null unless the update is offloaded
  std::unique_ptr<ParamUpdater> update_;  // of the net's parameters, or of their copies on the host
  std::optional<PackedWeights> packed_;   // written by the update
  bool packed_once_ = false;              // they are valid from the first step on
  bool fused_ = false;                    // ComputeGradients has queued the update
  // One object for all steps: the device records what it queues.
  const std::function<void()> queue_update_;
};

}  // namespace trainer

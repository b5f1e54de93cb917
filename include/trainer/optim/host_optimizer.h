#pragma once
// Optimizer offload: the net computes on another device, and the host updates the weights.

#include <memory_resource>
#include <optional>

#include "trainer/net/param_store.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/update_rule.h"

namespace trainer {

// The net's device evaluates a new batch, then the CPU applies the update rule. Weights and the
// rule's state are in host memory, and the net has a copy of the weights. Update does not change
// that copy; PullWeights updates it when all ranks have updated their parameters.
class HostOptimizer final : public Optimizer {
 public:
  // Weights and state are allocated from `memory`, which ranks may share: then all of them make the
  // same calls. `spec` and `memory` must outlive the object.
  HostOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule,
                std::pmr::memory_resource& memory);

  // Copies the net's weights to the host's, and the other way.
  void PushWeights();
  void PullWeights();

  int StatesPerWeight() const override { return 0; }  // on the net's device
  // Throws kUnavailable for a net whose loss must be scaled.
  void Prepare(Objective& objective, NoteHandler on_note) override;
  void ComputeGradients(const Hyperparams&, bool) override { objective_->Run(NetBatch::kNext); }
  float TakeLoss() override { return objective_->TakeLoss(); }
  void Update(const Hyperparams& hyper) override;
  void EmitNotes(bool) override { on_note_(update_->TakeNote()); }
  bool UpdateOnly(const std::vector<bool>& own, bool unscaled) override;
  const std::vector<std::vector<float*>>& state_arrays() const override {
    return update_->state_arrays();
  }
  const ParamStore* state_store() const override { return &*store_; }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  // Of a parameter that learns.
  struct Pair {
    Param *net, *host;
    size_t number;    // among all
    bool own = true;  // this rank's to move
  };

  const SolverSpec& spec_;
  std::unique_ptr<UpdateRule> rule_;  // until it is the update's
  std::pmr::memory_resource& memory_;
  Objective* objective_ = nullptr;
  NoteHandler on_note_;
  const Device* net_device_ = nullptr;
  std::unique_ptr<Device> host_;
  std::optional<ParamStore> store_;
  std::vector<Param*> params_;  // as the objective has them
  std::vector<Pair> learned_;
  std::optional<ParamUpdater> update_;
};

}  // namespace trainer

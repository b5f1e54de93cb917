#include "first_order.h"

#include <functional>
#include <optional>
#include <utility>

#include "trainer/net/f16_gradients.h"
#include "trainer/net/packed_weights.h"
#include "trainer/optim/loss_scale.h"

namespace trainer {
namespace {

class FirstOrderOptimizer final : public Optimizer {
 public:
  FirstOrderOptimizer(const SolverSpec& spec, std::unique_ptr<UpdateRule> rule)
      : spec_(spec), states_(rule->StatesPerWeight()), rule_(std::move(rule)) {}

  int StatesPerWeight() const override { return states_; }

  void Prepare(Objective& objective, NoteHandler on_note) override {
    objective_ = &objective;
    on_note_ = std::move(on_note);
    const auto scale = LossScaleOf(spec_, HasF16Gradients(objective.net()));
    update_.emplace(spec_, std::move(rule_), objective.device(), objective.params(),
                    objective.Gradients(), objective.NumRanks(), scale, objective.state_memory());
    if (scale) {
      objective.net().ScaleLoss(update_->decision()->loss_scale());
      LetGradientsTellOfNan(objective.net());
    }
    if (!objective.UpdatesMayWriteAll()) return;
    copies_.emplace(objective.net());
    if (copies_->empty()) return copies_.reset();
    update_->WritePackedWeights(copies_->by_param());
  }

  // The update writes the packed weights, so they are those of the weights until it begins.
  void ComputeGradients(const Hyperparams& hyper, bool fused) override {
    if (copies_ && !std::exchange(copied_, true)) copies_->Write();
    const PackedWeights::Scope copies_hold(copies_ ? &*copies_ : nullptr);
    fused_ = fused;
    if (fused) update_->SetHyperparams(hyper);
    objective_->Run(NetBatch::kNext, fused ? &queue_update_ : nullptr);
    if (fused && update_->ClearsGradients()) objective_->GradientsAreZero();
  }

  float TakeLoss() override { return objective_->TakeLoss(); }

  void Update(const Hyperparams& hyper) override {
    if (std::exchange(fused_, false)) return update_->Queued(hyper.iter);
    update_->SetRanks(objective_->NumRanks());
    if (!update_->AppliesInRanges()) objective_->Gradients();  // waits for all sums
    const auto total = [&](float squares) { return objective_->SumOverStages(squares); };
    update_->Begin(hyper, objective_->IsStage() ? total : std::function<float(float)>());
    for (int i = 0, next = 0; i < objective_->NumRanges(); i = next) {
      update_->Apply(objective_->NextReduced(i, &next));
    }
    if (update_->ClearsGradients()) objective_->GradientsAreZero();
  }

  void EmitNotes(bool wait) override {
    if (wait || !objective_->device().IsAsync()) on_note_(update_->TakeNote());
  }

  bool FuseEma(const std::vector<float*>& averages, float decay) override {
    update_->FuseEma(averages, decay);
    return true;
  }

  bool UpdateOnly(const std::vector<bool>& own, bool unscaled) override {
    if (unscaled && LossScale()) update_->decision()->EndScaling();
    update_->UpdateOnly(own);
    return true;
  }

  std::optional<LossScaleState> LossScale() override {
    LossScaler* const decision = update_->decision();
    if (decision == nullptr || decision->loss_scale() == nullptr) return std::nullopt;
    return decision->State();
  }
  void RestoreLossScale(const LossScaleState& state) override {
    if (LossScale()) update_->decision()->Restore(state);
  }

  const std::vector<std::vector<float*>>& state_arrays() const override {
    return update_->state_arrays();
  }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  const SolverSpec& spec_;
  Objective* objective_ = nullptr;
  NoteHandler on_note_;
  int states_;
  std::unique_ptr<UpdateRule> rule_;  // until it is the update's
  std::optional<ParamUpdater> update_;
  std::optional<PackedWeights> copies_;  // which the update writes
  bool copied_ = false;                  // and hold from the first step on
  bool fused_ = false;                   // ComputeGradients has queued the update
  const std::function<void()> queue_update_ = [this] { update_->Queue(); };
};

}  // namespace

std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec) {
  return MakeFirstOrderOptimizer(spec, MakeUpdateRule(spec, OptimizerRegistry::Get().Names()));
}

std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec,
                                                   std::unique_ptr<UpdateRule> rule) {
  return std::make_unique<FirstOrderOptimizer>(spec, std::move(rule));
}

}  // namespace trainer

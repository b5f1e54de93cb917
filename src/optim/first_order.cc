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

  void Prepare(Objective& objective) override {
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

  // If the solver does nothing between gradients and update, both are enqueued as one piece of
  // work.
  void Step(Objective& objective, StepFrame& frame) override {
    if (copies_ && !std::exchange(copied_, true)) copies_->Write();
    const PackedWeights::Scope copies_hold(copies_ ? &*copies_ : nullptr);
    if (const auto hyper = frame.HyperparamsAhead()) return StepAsync(objective, frame, *hyper);
    objective.Run(NetBatch::kNext);
    const Hyperparams hyper = frame.BeginStarted();
    Update(objective, hyper);
    if (!objective.device().IsAsync()) frame.Note(update_->TakeNote());
  }

  void Update(Objective& objective, const Hyperparams& hyper) override {
    update_->SetRanks(objective.NumRanks());
    if (!update_->AppliesInRanges()) objective.Gradients();  // waits for all ranges
    const auto total = [&](float squares) { return objective.SumOverStages(squares); };
    update_->Begin(hyper, objective.IsStage() ? total : std::function<float(float)>());
    for (int i = 0, next = 0; i < objective.NumRanges(); i = next) {
      update_->Apply(objective.NextReduced(i, &next));
    }
    if (update_->ClearsGradients()) objective.GradientsAreZero();
  }

  bool FuseEma(const std::vector<float*>& averages, float decay) override {
    update_->FuseEma(averages, decay);
    return true;
  }

  bool UpdateOnly(const std::vector<bool>& own) override {
    update_->UpdateOnly(own);
    return true;
  }

  std::string TakeNote() override { return update_->TakeNote(); }
  std::optional<LossScaleState> LossScale() override {
    LossScaler* const decision = update_->decision();
    if (decision == nullptr || decision->loss_scale() == nullptr) return std::nullopt;
    return decision->State();
  }
  void RestoreLossScale(const LossScaleState& state) override {
    if (LossScale()) update_->decision()->Restore(state);
  }
  void ExpectUnscaled() override {
    if (LossScale()) update_->decision()->EndScaling();
  }

  const std::vector<std::vector<float*>>& state_arrays() const override {
    return update_->state_arrays();
  }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  void StepAsync(Objective& objective, StepFrame& frame, const Hyperparams& hyper) {
    update_->SetHyperparams(hyper);
    objective.Run(NetBatch::kNext, &queue_update_);
    if (update_->ClearsGradients()) objective.GradientsAreZero();
    frame.BeginStarted();
    update_->Queued(hyper.iter);
  }

  const SolverSpec& spec_;
  int states_;
  std::unique_ptr<UpdateRule> rule_;  // moved into update_ by Prepare
  std::optional<ParamUpdater> update_;
  std::optional<PackedWeights> copies_;  // weight copies that each update also writes
  bool copied_ = false;                  // copies_ have been written for the first step
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

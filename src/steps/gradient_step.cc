#include "gradient_step.h"

#include <functional>
#include <optional>
#include <utility>

#include "trainer/net/f16_gradients.h"
#include "trainer/net/packed_weights.h"
#include "trainer/steps/loss_scale.h"

namespace trainer {
namespace {

class GradientStep final : public StepRule {
 public:
  GradientStep(const SolverSpec& spec, std::unique_ptr<Rule> rule)
      : spec_(spec), states_(rule->StatesPerWeight()), rule_(std::move(rule)) {}

  int StatesPerWeight() const override { return states_; }

  void Prepare(Objective& objective) override {
    const auto scale = LossScaleOf(spec_, HasF16Gradients(objective.net()));
    update_.emplace(spec_, std::move(rule_), objective.device(), objective.params(),
                    objective.Gradients(), objective.NumReplicas(), scale,
                    objective.state_memory());
    if (scale) {
      objective.net().ScaleLoss(update_->decision()->loss_scale());
      LetGradientsTellOfNan(objective.net());
    }
    if (!objective.UpdatesWriteAll()) return;
    copies_.emplace(objective.net());
    if (copies_->empty()) return copies_.reset();
    update_->WriteCopies(copies_->by_param());
  }

  // Where nothing comes between gradients and update, the device gets both as one.
  void Step(Objective& objective, StepFrame& frame) override {
    if (copies_ && !std::exchange(copied_, true)) copies_->Write();
    const PackedWeights::Scope copies_hold(copies_ ? &*copies_ : nullptr);
    if (const auto rates = frame.RatesAhead()) return StepAhead(objective, frame, *rates);
    objective.Start(NetBatch::kNext);
    const UpdateRates rates = frame.BeginStarted();
    ApplyGradients(objective, rates);
    if (!objective.device().IsAsync()) frame.Note(update_->TakeNote());
  }

  void ApplyGradients(Objective& objective, const UpdateRates& rates) override {
    update_->SetReplicas(objective.NumReplicas());
    if (!update_->AppliesInRanges()) objective.Gradients();  // waits for all sums
    const auto total = [&](float squares) { return objective.SumOverParts(squares); };
    update_->Begin(rates, objective.IsPart() ? total : std::function<float(float)>());
    for (int i = 0, next = 0; i < objective.NumRanges(); i = next) {
      update_->Apply(objective.SummedRanges(i, &next));
    }
    if (update_->ClearsGradients()) objective.GradientsAreZero();
  }

  bool KeepAverages(const std::vector<float*>& averages, float decay) override {
    update_->KeepAverages(averages, decay);
    return true;
  }

  bool SetShare(const std::vector<bool>& own) override {
    update_->SetShare(own);
    return true;
  }

  std::string TakeNote() override { return update_->TakeNote(); }
  std::optional<LossScaleState> LossScale() override {
    UpdateDecision* const decision = update_->decision();
    if (decision == nullptr || decision->loss_scale() == nullptr) return std::nullopt;
    return decision->State();
  }
  void RestoreLossScale(const LossScaleState& state) override {
    if (LossScale()) update_->decision()->Restore(state);
  }
  void ExpectUnscaled() override {
    if (LossScale()) update_->decision()->EndScaling();
  }

  const std::vector<std::vector<float*>>& history() const override { return update_->history(); }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  void StepAhead(Objective& objective, StepFrame& frame, const UpdateRates& rates) {
    update_->SetRates(rates);
    objective.Start(NetBatch::kNext, &queue_update_);
    if (update_->ClearsGradients()) objective.GradientsAreZero();
    frame.BeginStarted();
    update_->Queued(rates.iter);
  }

  const SolverSpec& spec_;
  int states_;
  std::unique_ptr<Rule> rule_;  // until it is the update's
  std::optional<WeightUpdate> update_;
  std::optional<PackedWeights> copies_;  // which the update writes
  bool copied_ = false;                  // and hold from the first step on
  const std::function<void()> queue_update_ = [this] { update_->Queue(); };
};

}  // namespace

std::unique_ptr<StepRule> MakeGradientStep(const SolverSpec& spec) {
  return MakeGradientStep(spec, MakeRule(spec, StepRuleRegistry::Get().Names()));
}

std::unique_ptr<StepRule> MakeGradientStep(const SolverSpec& spec, std::unique_ptr<Rule> rule) {
  return std::make_unique<GradientStep>(spec, std::move(rule));
}

}  // namespace trainer

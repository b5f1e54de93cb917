#include "gradient_step.h"

#include <optional>
#include <utility>

namespace trainer {
namespace {

class GradientStep final : public StepRule {
 public:
  GradientStep(const SolverSpec& spec, std::unique_ptr<Rule> rule)
      : spec_(spec), states_(rule->StatesPerWeight()), rule_(std::move(rule)) {}

  int StatesPerWeight() const override { return states_; }

  void Prepare(Objective& objective) override {
    update_.emplace(spec_, std::move(rule_), objective.device(), objective.params(),
                    objective.Gradients(), objective.NumReplicas(), objective.state_memory());
  }

  void Step(Objective& objective, StepFrame& frame) override {
    objective.Start(NetBatch::kNext);
    const UpdateRates rates = frame.BeginStarted();
    frame.Note(ApplyGradients(objective, rates));
  }

  std::string ApplyGradients(Objective& objective, const UpdateRates& rates) override {
    update_->SetReplicas(objective.NumReplicas());
    if (!update_->AppliesInRanges()) objective.Gradients();  // waits for all sums
    std::string note =
        update_->Begin(rates, [&](float squares) { return objective.SumOverParts(squares); });
    for (int i = 0; i < objective.NumRanges(); ++i) update_->Apply(objective.SummedRange(i));
    if (update_->ClearsGradients()) objective.GradientsAreZero();
    return note;
  }

  bool SetShare(const std::vector<bool>& own) override {
    update_->SetShare(own);
    return true;
  }

  const std::vector<std::vector<float*>>& history() const override { return update_->history(); }
  size_t Bytes() const override { return update_->Bytes(); }

 private:
  const SolverSpec& spec_;
  int states_;
  std::unique_ptr<Rule> rule_;  // until it is the update's
  std::optional<WeightUpdate> update_;
};

}  // namespace

std::unique_ptr<StepRule> MakeGradientStep(const SolverSpec& spec) {
  return std::make_unique<GradientStep>(spec, MakeRule(spec, StepRuleRegistry::Get().Names()));
}

}  // namespace trainer

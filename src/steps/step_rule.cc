#include "trainer/steps/step_rule.h"

#include <algorithm>

#include "gradient_step.h"
#include "trainer/base/text/text.h"

namespace trainer {

void StepRule::RestoreState(const std::string& state) {
  if (state.empty()) return;
  throw Error(ErrorCode::kBadSnapshot,
              Join("the snapshot has ", state.size(),
                   " bytes of the state of another solver type; resume with the solver type of "
                   "that run, or start from its weights with --weights"));
}

std::unique_ptr<StepRule> MakeStepRule(const SolverSpec& spec) {
  const StepRuleRegistry& registry = StepRuleRegistry::Get();
  const std::string& type = spec.proto.type();
  std::unique_ptr<StepRule> rule =
      registry.Has(type) ? registry.Make(type, spec) : MakeGradientStep(spec);
  if (rule->EvaluatesAgain() && spec.proto.iter_size() > 1) {
    spec.Fail("iter_size", Join("iter_size is ", spec.proto.iter_size(), ", but ", type,
                                " evaluates each batch more than once, which is impossible with "
                                "several passes per batch; set iter_size: 1 and a larger batch"));
  }
  if (rule->EvaluatesAgain() && spec.proto.virtual_ranks() > 1) {
    spec.Fail("virtual_ranks", Join("virtual_ranks is ", spec.proto.virtual_ranks(), ", but ", type,
                                    " evaluates each batch more than once, which is impossible "
                                    "with several parts per batch; set virtual_ranks: 1"));
  }
  return rule;
}

std::vector<std::string> StepRuleNames() {
  std::vector<std::string> names = RuleRegistry::Get().Names();
  for (const std::string& name : StepRuleRegistry::Get().Names()) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace trainer

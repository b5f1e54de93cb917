#pragma once

#include <memory>

#include "trainer/steps/step_rule.h"

namespace trainer {

// One evaluation on a new batch, and the update rule that the solver's `type` names.
std::unique_ptr<StepRule> MakeGradientStep(const SolverSpec& spec);
// The same with another update rule.
std::unique_ptr<StepRule> MakeGradientStep(const SolverSpec& spec, std::unique_ptr<Rule> rule);

}  // namespace trainer

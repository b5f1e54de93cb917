#pragma once

#include <memory>

#include "trainer/optim/optimizer.h"

namespace trainer {

// Makes the optimizer that evaluates one new batch per step and applies the update rule that the
// solver's `type` names.
std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec);
// Makes it with `rule` instead of the solver's type.
std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec,
                                                   std::unique_ptr<UpdateRule> rule);

}  // namespace trainer

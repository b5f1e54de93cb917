#pragma once

#include <memory>

#include "trainer/optim/optimizer.h"

namespace trainer {

// One evaluation on a new batch, and the update rule that the solver's `type` names.
std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec);
// The same with another update rule.
std::unique_ptr<Optimizer> MakeFirstOrderOptimizer(const SolverSpec& spec,
                                                   std::unique_ptr<UpdateRule> rule);

}  // namespace trainer

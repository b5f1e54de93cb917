#pragma once
// What the stages of a pipeline hold.

#include "flags.h"

namespace trainer {

// Whether --strategy, or else the solver, says pipeline.
bool IsPipeline(const Flags& flags);
int PlanStages(const Flags& flags);

}  // namespace trainer

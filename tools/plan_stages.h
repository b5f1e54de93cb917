#pragma once
// What the stages of a pipeline hold.

#include <vector>

#include "flags.h"
#include "plan_gpu.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Whether --strategy, or else the solver, says pipeline.
bool IsPipeline(const Flags& flags);
int PlanStages(const Flags& flags);

// What the rank of one stage takes, and what of it the values of its training net take, which are
// there `slots` times.
struct StageParts {
  std::vector<PlannedPart> parts;
  size_t train_values = 0;
  int slots = 1;
};
StageParts PartsOfStage(const SolverSpec& spec, const Device& device, int stages, int stage);

}  // namespace trainer

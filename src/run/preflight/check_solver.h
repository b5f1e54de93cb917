#pragma once
// The preflight check of a run.

#include "trainer/run/preflight/preflight.h"

namespace trainer {

// Reports everything that the run would meet. Adds the outputs of the first passes to `passes`.
void CheckSolverRun(const TrainRequest& request, PreflightReport* report, Json* passes);

}  // namespace trainer

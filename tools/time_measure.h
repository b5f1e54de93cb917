#pragma once
// How long a net takes: `trainer time` prints it, `trainer plan --ranks` goes on from it.

#include "time_report.h"
#include "trainer/backend/device.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"
#include "trainer/solver/solver.h"

namespace trainer {

// What is measured: a net, and perhaps the solver that owns it.
struct Subject {
  Net* net = nullptr;
  Solver* solver = nullptr;
  const Device* device = nullptr;
  bool backward = false;
};

// A whole iteration (with a solver), a pass, and a pass with a clock around every layer, in turns.
Times MeasureTimes(const Subject& subject, int iterations);

// The solver without what is no part of a plain iteration, for `iterations` of them at least.
SolverSpec TrainingOnly(SolverSpec spec, int iterations);

}  // namespace trainer

#include "trainer/run/solver_source.h"

#include "trainer/config/net_state.h"
#include "trainer/config/overrides.h"

namespace trainer {

SolverSpec ReadSolver(const SolverSource& source) {
  Overrides overrides(source.set);
  SolverSpec spec = LoadSolver(source.file, source.state, &overrides);
  RequireNamedStage(source.state.stages, *spec.train.net);
  return spec;
}

}  // namespace trainer

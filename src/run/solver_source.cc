#include "trainer/run/solver_source.h"

#include "trainer/config/freeze.h"
#include "trainer/config/net_state.h"
#include "trainer/config/overrides.h"

namespace trainer {

void ApplyFreezing(const SolverSource& source, SolverSpec* spec) {
  if (!source.freeze.empty()) FreezeLayers(source.freeze, spec);
  if (source.unfreeze_at > 0) spec->proto.set_unfreeze_at(source.unfreeze_at);
}

SolverSpec ReadSolver(const SolverSource& source) {
  Overrides overrides(source.set);
  SolverSpec spec = LoadSolver(source.file, source.state, &overrides);
  ApplyFreezing(source, &spec);
  RequireNamedStage(source.state.stages, *spec.train.net);
  return spec;
}

}  // namespace trainer

#pragma once
// The file with the solver and its nets after all changes by flags.

#include <memory>
#include <string>

#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// Returns "<snapshot_prefix>_resolved.prototxt".
std::string ResolvedPath(const SolverSpec& spec);

// Makes an observer that writes the file with the first snapshot. `spec` must outlive it.
std::unique_ptr<TrainingObserver> MakeResolvedFileWriter(const SolverSpec& spec);

}  // namespace trainer

#pragma once

#include <string>

namespace trainer {

// Returns a path that the run in `folder` recorded. If the path does not exist here, returns it
// relative to the folder in which the run was started.
std::string ResolveRunPath(const std::string& folder, const std::string& name);

// Returns the weights of the run's best test if the run kept them. Otherwise returns the newest
// weights and logs a warning. `doing` begins the log line, e.g. "Testing" or "Using". Throws
// kNoInput if `folder` is not the folder of a run, and if the run has no snapshot.
std::string ChooseRunWeights(const std::string& folder, const std::string& doing);

}  // namespace trainer

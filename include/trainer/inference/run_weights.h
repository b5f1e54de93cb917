#pragma once

#include <string>

namespace trainer {

// Returns a path that the run in `folder` recorded, relative to the folder in which the run was
// started if it does not exist here.
std::string ResolveRunPath(const std::string& folder, const std::string& name);

// Returns the weights of the run's best test if the run kept them, else the newest weights, with a
// warning. `doing` begins the line of the log: "Testing", "Using". Throws kNoInput if `folder`
// is not the folder of a run, and if the run has no snapshot.
std::string ChooseRunWeights(const std::string& folder, const std::string& doing);

}  // namespace trainer

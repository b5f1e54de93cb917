#pragma once
// Commands of the program, run in the test's process.

#include <string>
#include <vector>

#include "program.h"

namespace trainer {

// Runs `trainer <arguments>` in the folder and with the environment of `options` and returns its
// exit code and both outputs. Use RunProgram for commands that need their own process: signals,
// limits, ranks, launchers and crashes. Restores the working folder, the environment, the log level
// and the settings of readers. Throws std::invalid_argument for `sweep` and for commands with
// several ranks, which start the program again.
Outcome RunHere(const std::vector<std::string>& arguments, const RunOptions& options = {});

}  // namespace trainer

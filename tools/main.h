#pragma once
// Runs a command line of the program, from its words to an exit code.

#include <string>
#include <vector>

namespace trainer {

// Runs the verb that `arguments` (without the program's name) name. Prints one line to stderr for
// each error that the verb throws, and returns the exit code.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace trainer

#pragma once
// What this process was started with.

#include <string>
#include <vector>

namespace trainer {

// The program and its arguments.
std::vector<std::string> CommandLine();

// The value of an environment variable, "" where it is not set.
std::string EnvironmentVariable(const char* name);

}  // namespace trainer

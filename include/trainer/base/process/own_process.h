#pragma once
// How this process was started.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

// Returns the program and its arguments as the system stores them, or nothing if /proc is not
// there.
std::vector<std::string> CommandLine();

// Returns the value of an environment variable, "" if it is not set.
std::string EnvironmentVariable(const char* name);

// Returns when the system loaded the program.
std::chrono::steady_clock::time_point LoadTime();

}  // namespace trainer

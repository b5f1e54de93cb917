#pragma once
// How this process was started.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

// The program and its arguments.
std::vector<std::string> CommandLine();

// The value of an environment variable, "" if it is not set.
std::string EnvironmentVariable(const char* name);

// When the system loaded the program.
std::chrono::steady_clock::time_point LoadTime();

}  // namespace trainer

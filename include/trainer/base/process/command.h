#pragma once
// Runs short commands of the system that answer within a few seconds.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

struct CommandResult {
  int exit_code = -1;   // -1: it did not end by itself
  std::string out;      // its output and its errors, at most 1 MiB
  std::string problem;  // "" if it ran and ended with 0, else the reason, for people
};

// Runs `words[0]`, looked up in PATH, with the other words as arguments, without a shell and
// without input. Kills the command if it has not ended after `limit`. A failure of the command
// never throws.
CommandResult RunCommand(const std::vector<std::string>& words, std::chrono::milliseconds limit);

}  // namespace trainer

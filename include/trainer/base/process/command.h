#pragma once
// Short commands of the system, whose answer is worth waiting a few seconds for.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

struct CommandResult {
  int exit_code = -1;   // -1: it did not end by itself
  std::string out;      // what it wrote to its output, at most 1 MiB of it
  std::string problem;  // "" where it ran and ended with 0, else why not, for people
};

// Runs `words[0]`, looked up in PATH, with the other words as arguments, no shell and no input.
// What is not done after `limit` is killed. Never throws for what the command does.
CommandResult RunCommand(const std::vector<std::string>& words, std::chrono::milliseconds limit);

}  // namespace trainer

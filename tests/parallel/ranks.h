#pragma once
// Real processes that are the ranks of one machine.

#include <functional>
#include <string>
#include <vector>

#include "trainer/parallel/world.h"

namespace trainer {

struct RanksOutcome {
  std::vector<int> codes;  // by rank; 128 + the signal that ended one
  std::string err;         // what all of them wrote to stderr

  // The lines of err that begin with "error: ".
  std::vector<std::string> Errors() const;
};

// Runs body(world) in each of `count` processes, as main() would: what it throws ends the others,
// and it returns the exit code. `before`, where given, runs before a process joins. Processes that
// are stopped when all others have ended are killed.
RanksOutcome RunRanks(int count, const std::function<int(World&)>& body,
                      const World::Options& settings = {},
                      const std::function<void(int rank)>& before = nullptr);

// The same where all must end with 0 and without a word.
void ExpectRanks(int count, const std::function<void(World&)>& body);

}  // namespace trainer

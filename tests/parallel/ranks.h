#pragma once
// Real processes as the ranks of one machine.

#include <functional>
#include <string>
#include <vector>

#include "trainer/parallel/world.h"

namespace trainer {

struct RanksOutcome {
  std::vector<int> codes;  // by rank; 128 + the signal that ended one
  std::string err;         // what all of them wrote to stderr

  // Returns the lines of err that begin with "error: ", without that prefix.
  std::vector<std::string> Errors() const;
};

// Runs body(world) in each of `count` processes, as main() would: body() returns the exit code, and
// an error that it throws ends the others. `before`, if given, runs before a process joins.
// Processes that are stopped when all others have ended are killed.
RanksOutcome RunRanks(int count, const std::function<int(World&)>& body,
                      const World::Options& settings = {},
                      const std::function<void(int rank)>& before = nullptr);

// Runs body(world) in `count` processes, which must all end with 0 and write nothing to stderr.
void ExpectRanks(int count, const std::function<void(World&)>& body);

}  // namespace trainer

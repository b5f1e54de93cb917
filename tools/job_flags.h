#pragma once
// Declares flags of the verbs that print batch scripts: `job` and `sweep`.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

// Declares --cores, the cores for each rank; 0 lets the program choose.
void DeclareCores(FlagSet& flags, int* cores);
// Declares --array_limit, how many tasks of a job array may run at once.
void DeclareArrayLimit(FlagSet& flags, int* limit);

// Returns the flags of `train` except those in `without`. A script or a sweep passes them on to its
// runs.
std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without);

// Returns the words of the command line: "trainer", `verb`, --solver, the flags of `table` that
// differ from their defaults, and the repeated flags with these names. --gpu=0 becomes --gpu.
std::vector<std::string> CommandWords(const std::string& verb, std::span<const Flag> table,
                                      std::initializer_list<std::string_view> repeated,
                                      const Flags& flags);

// Throws kUsage if one of `words`, the flags of a command line, only works with batch systems other
// than `system`.
void RequireFlagsOfSystem(const std::string& system, const std::vector<std::string>& words);

}  // namespace trainer

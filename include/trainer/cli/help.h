#pragma once
// The pages of `trainer help`. Their lines have at most 80 columns.

#include <string>

#include "trainer/cli/flag_set.h"

namespace trainer {

// Returns the page of the program: usage, examples and the list of verbs.
std::string ProgramHelp();
// Returns the page of a verb, an alias, a group or a task, with its flags. Throws kInternal for any
// other name.
std::string VerbHelp(const std::string& name);
// Returns a flag as help writes it: "--out=FILE", "--json", "--gpu[=ID]".
std::string FlagSpelling(const Flag& flag);

}  // namespace trainer

#pragma once
// The pages of `trainer help`. Their lines have at most 80 columns.

#include <string>

#include "trainer/cli/flag_set.h"

namespace trainer {

std::string ProgramHelp();                      // the list of verbs
std::string VerbHelp(const std::string& name);  // the page of a verb, a group or a task
// Returns a flag as help writes it: "--out=FILE", "--json", "--gpu[=ID]".
std::string FlagSpelling(const Flag& flag);

}  // namespace trainer

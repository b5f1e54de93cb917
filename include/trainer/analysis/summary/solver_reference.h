#pragma once
// The reference of update rules and solver fields.

#include <string>

#include "trainer/base/text/json.h"

namespace trainer {

// Returns the list of update rules and of the solver's fields.
std::string SolverFieldsText();

// Returns the explanation of a field, or the formula of an update rule. Throws kUsage, naming the
// nearest field, for any other name.
std::string SolverReference(const std::string& name);

// Returns all update rules, and all messages that a solver can contain, for editors and other
// programs.
Json SolverJson();

}  // namespace trainer

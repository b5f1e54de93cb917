#pragma once
// The text of `trainer help --completion`.

#include <string>

namespace trainer {

// Returns a script for bash that completes verbs and flags.
std::string CompletionScript();

}  // namespace trainer

#pragma once
// Quotes words for a shell.

#include <string>

namespace trainer {

// Returns `text` as one word of the shell, in single quotes if it needs them. Throws kUsage for
// control characters, so that the word fits into a comment or a directive of a batch script.
std::string ShellQuote(const std::string& text);

}  // namespace trainer

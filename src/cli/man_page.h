#pragma once
// The text of `trainer help --man`.

#include <string>

namespace trainer {

// Returns the pages of all verbs as one manual page in roff, for `man`.
std::string ManPage();

}  // namespace trainer

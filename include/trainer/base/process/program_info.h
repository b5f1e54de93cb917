#pragma once
// Which build of the program runs.

#include <string>
#include <string_view>

namespace trainer {

// Returns the version, such as "0.1.0".
std::string_view ProgramVersion();
// Returns whether the compiler optimised, and which one it was: "optimised build, GCC 12.2.0".
std::string BuildKind();
// Returns the commit that the program was built from, "1a2b3c4d5e6f", or "1a2b3c4d5e6f and
// changes"; "unknown" if it was built outside of a repository, and in tests.
std::string_view BuildCommit();
// Returns "trainer 0.1.0, checksum 1a2b3c4d". The checksum covers the executable, so two builds
// differ.
std::string ProgramIdentity();

}  // namespace trainer

#pragma once
// What a run's figures depend on beside its files: the program and the machine.

#include <cstddef>
#include <string>
#include <string_view>

namespace trainer {

// The processor's name as Linux tells it, or "unknown".
std::string ProcessorName();
// "3.0.0, OpenMP threads"
std::string OneDnnVersion();
// "optimised build, GCC 12.2.0"
std::string BuildKind();
// The commit it was built of, "1a2b3c4d5e6f" or "1a2b3c4d5e6f and changes"; "unknown" where it was
// not built in a repository.
std::string_view BuildCommit();
// "trainer 0.1.0, checksum 1a2b3c4d": two builds differ.
std::string ProgramIdentity();
// Of this machine's memory.
size_t HostBytes();

}  // namespace trainer

#pragma once
// The hardware of this host.

#include <cstddef>
#include <string>

namespace trainer {

// Returns the name of the host as the system has it, or "" if there is none.
std::string HostName();
// Returns the processor's name as Linux reports it, or "unknown".
std::string ProcessorName();
// Returns the bytes of memory that the host has.
size_t InstalledMemory();

}  // namespace trainer

#pragma once
// Explains on stderr each forbidden access to device memory.

#include <string>

namespace emulated_gpu {

// Handles SIGSEGV from now on. The handler that was installed before runs after the explanation.
void ExplainSegfaults();

// Returns the position of the address: "12 bytes into an allocation of 256 bytes".
std::string DescribeAddress(const void* address);

}  // namespace emulated_gpu

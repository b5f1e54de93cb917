#pragma once
// Says on stderr what happened where somebody touches memory of a device that he may not.

#include <string>

namespace emulated_gpu {

// From now on. What other handlers do with SIGSEGV they do behind that line.
void ExplainSegfaults();

// "12 bytes into an allocation of 256 bytes"
std::string DescribeAddress(const void* address);

}  // namespace emulated_gpu

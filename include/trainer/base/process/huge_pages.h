#pragma once
// Large pages for large arrays.

#include <cstddef>

namespace trainer {

// Asks the system to use large pages for `bytes` at `memory` that were not touched yet: touching
// them then takes a fraction of the page faults. A wish; small and refused ones change nothing.
void AdviseHugePages(void* memory, size_t bytes);

}  // namespace trainer

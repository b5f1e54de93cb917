#pragma once
// Large pages for large arrays.

#include <cstddef>

namespace trainer {

// Asks the system to use large pages for `bytes` bytes at `memory` that were not touched yet:
// touching them then takes a fraction of the page faults. This is only a hint: a small array or a
// refusal changes nothing.
void AdviseHugePages(void* memory, size_t bytes);

}  // namespace trainer

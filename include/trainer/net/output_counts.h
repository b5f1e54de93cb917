#pragma once

#include <cstddef>

namespace trainer {

// Throws kConfig when two batches differ in how many numbers a net puts out: after a Filter, and
// then the mean over batches has no meaning.
void RequireEqualCounts(size_t before, size_t now);

}  // namespace trainer

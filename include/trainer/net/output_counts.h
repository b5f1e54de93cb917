#pragma once

#include <cstddef>

namespace trainer {

// Throws kConfig if two batches have different numbers of output values, as after a Filter layer:
// the mean over batches would be meaningless.
void RequireEqualCounts(size_t before, size_t now);

}  // namespace trainer

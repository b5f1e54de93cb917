#pragma once

#include <cstdint>
#include <span>

#include "trainer/image/image.h"

namespace trainer {

// Draws at most 256 filters or images of shape (N, C, H, W) side by side. With three channels they
// are in colour; otherwise each channel is a gray tile. The smallest of all values is black and the
// largest is white. Small tiles are enlarged. `values` must not be empty.
Image MakeImageGrid(std::span<const float> values, std::span<const int64_t> shape);

}  // namespace trainer

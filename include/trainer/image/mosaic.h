#pragma once

#include <cstdint>
#include <span>

#include "trainer/image/image.h"

namespace trainer {

// Filters or images (N, C, H, W) side by side as one picture: in colour where C is 3, otherwise
// each channel by itself in grey; black is the least of all numbers, white the largest. At most 256
// tiles. Small ones are enlarged. Not for tensors without numbers.
Image Mosaic(std::span<const float> numbers, std::span<const int64_t> shape);

}  // namespace trainer

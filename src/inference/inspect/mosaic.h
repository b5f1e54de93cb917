#pragma once
// Pictures of weights and of outputs of layers, none of which is much larger than kMosaicSide.

#include <cstdint>
#include <span>

#include "trainer/image/image.h"

namespace trainer {

inline constexpr int64_t kMosaicTiles = 256;  // at most
inline constexpr int64_t kMosaicSide = 512;   // pixels of the longer side, about

// Draws filters or images of shape (N, C, H, W) as MakeImageGrid does. Where they would make a
// picture larger than kMosaicSide, it shrinks them, so that a pixel is the mean of those that it
// covers. `values` must not be empty.
Image MakeTiles(std::span<const float> values, std::span<const int64_t> shape);

// Draws the values of one item, whose shape has no batch axis. The last two axes are a map, and the
// maps of all other axes stand side by side, each a gray tile. A matrix is one tile. Vectors, and
// maps of one value, are the pixels of one tile, in rows. `values` must not be empty.
Image MakeMosaic(std::span<const float> values, std::span<const int64_t> shape);

}  // namespace trainer

#pragma once
// Draws weights and outputs of layers as pictures that are hardly larger than kMosaicSide.

#include <cstdint>
#include <span>

#include "trainer/image/image.h"

namespace trainer {

inline constexpr int64_t kMosaicTiles = 256;  // most tiles in a picture
inline constexpr int64_t kMosaicSide = 512;   // approximate longer side of a picture, in pixels

// Draws filters or images of shape (N, C, H, W) as MakeImageGrid does. If the picture would be
// larger than kMosaicSide, shrinks the filters or images: each pixel becomes the mean of the pixels
// that it replaces. `values` must not be empty.
Image MakeTiles(std::span<const float> values, std::span<const int64_t> shape);

// Draws the values of one item, whose shape has no batch axis. The last two axes are a map, and
// each map becomes a gray tile in a grid. A matrix is one tile. A vector, or a set of maps of one
// value, becomes the pixels of one tile, in rows. `values` must not be empty.
Image MakeMosaic(std::span<const float> values, std::span<const int64_t> shape);

}  // namespace trainer

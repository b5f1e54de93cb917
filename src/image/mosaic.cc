#include "trainer/image/mosaic.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainer {
namespace {

constexpr int64_t kMostTiles = 256;
constexpr int kWidth = 24;  // that a tile is enlarged to, about

// From numbers to grey levels.
struct Levels {
  float low = 0, scale = 0;

  explicit Levels(std::span<const float> numbers) {
    float high = -std::numeric_limits<float>::infinity();
    low = -high;
    for (const float number : numbers) {
      if (!std::isfinite(number)) continue;
      low = std::min(low, number);
      high = std::max(high, number);
    }
    scale = high > low ? 255 / (high - low) : 0;
  }
  uint8_t Of(float number) const {
    const float level = (number - low) * scale;
    return level > 0 ? static_cast<uint8_t>(std::min(level, 255.0f) + 0.5f) : 0;
  }
};

// Where tiles stand, with a line of one pixel around each.
struct Grid {
  int64_t tiles, columns, rows, height, width;  // of a tile: enlarged
  int64_t zoom;

  Grid(int64_t count, int64_t tile_height, int64_t tile_width)
      : tiles(std::min(count, kMostTiles)),
        columns(static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))))),
        rows((tiles + columns - 1) / columns),
        zoom(std::max<int64_t>(1, kWidth / tile_width)) {
    height = tile_height * zoom;
    width = tile_width * zoom;
  }
  int64_t Top(int64_t tile) const { return 1 + tile / columns * (height + 1); }
  int64_t Left(int64_t tile) const { return 1 + tile % columns * (width + 1); }
};

}  // namespace

Image Mosaic(std::span<const float> numbers, std::span<const int64_t> shape) {
  const int64_t colors = shape[1] == 3 ? 3 : 1, plane = shape[2] * shape[3];
  const Grid grid(shape[0] * shape[1] / colors, shape[2], shape[3]);
  const Levels levels(numbers.first(static_cast<size_t>(grid.tiles * colors * plane)));
  Image image;
  image.channels = static_cast<int>(colors);
  image.height = static_cast<int>(1 + grid.rows * (grid.height + 1));
  image.width = static_cast<int>(1 + grid.columns * (grid.width + 1));
  image.pixels.assign(static_cast<size_t>(colors * image.Plane()), 0);
  for (int64_t tile = 0; tile < grid.tiles; ++tile) {
    for (int64_t c = 0; c < colors; ++c) {
      const float* const from = numbers.data() + (tile * colors + c) * plane;
      uint8_t* const to = image.pixels.data() + c * image.Plane();
      for (int64_t y = 0; y < grid.height; ++y) {
        uint8_t* const line = to + (grid.Top(tile) + y) * image.width + grid.Left(tile);
        const float* const numbers_of_line = from + y / grid.zoom * shape[3];
        for (int64_t x = 0; x < grid.width; ++x) {
          line[x] = levels.Of(numbers_of_line[x / grid.zoom]);
        }
      }
    }
  }
  return image;
}

}  // namespace trainer

#include "trainer/image/image_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainer {
namespace {

constexpr int64_t kMaxTiles = 256;
constexpr int64_t kTileSide = 24;  // about; smaller tiles are enlarged

// Maps values to gray levels. Infinite and NaN values do not count for the range.
struct Levels {
  float low = 0, scale = 0;

  explicit Levels(std::span<const float> values) {
    float high = -std::numeric_limits<float>::infinity();
    low = -high;
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    scale = high > low ? 255 / (high - low) : 0;
  }
  uint8_t Of(float value) const {
    const float level = (value - low) * scale;
    return level > 0 ? static_cast<uint8_t>(std::min(level, 255.0f) + 0.5f) : 0;
  }
};

// The positions of the tiles, with a border of one pixel around each.
struct Grid {
  int64_t tiles, columns, rows, height, width;  // of an enlarged tile
  int64_t zoom;

  Grid(int64_t count, int64_t tile_height, int64_t tile_width)
      : tiles(std::min(count, kMaxTiles)),
        columns(static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))))),
        rows((tiles + columns - 1) / columns),
        zoom(std::max<int64_t>(1, kTileSide / std::max(tile_height, tile_width))) {
    height = tile_height * zoom;
    width = tile_width * zoom;
  }
  int64_t Top(int64_t tile) const { return 1 + tile / columns * (height + 1); }
  int64_t Left(int64_t tile) const { return 1 + tile % columns * (width + 1); }
};

}  // namespace

Image MakeImageGrid(std::span<const float> values, std::span<const int64_t> shape) {
  const int64_t colors = shape[1] == 3 ? 3 : 1, plane = shape[2] * shape[3];
  const Grid grid(shape[0] * shape[1] / colors, shape[2], shape[3]);
  const Levels levels(values.first(static_cast<size_t>(grid.tiles * colors * plane)));
  Image image;
  image.channels = static_cast<int>(colors);
  image.height = static_cast<int>(1 + grid.rows * (grid.height + 1));
  image.width = static_cast<int>(1 + grid.columns * (grid.width + 1));
  image.pixels.assign(static_cast<size_t>(colors * image.Plane()), 0);
  for (int64_t tile = 0; tile < grid.tiles; ++tile) {
    for (int64_t c = 0; c < colors; ++c) {
      const float* const from = values.data() + (tile * colors + c) * plane;
      uint8_t* const to = image.pixels.data() + c * image.Plane();
      for (int64_t y = 0; y < grid.height; ++y) {
        uint8_t* const line = to + (grid.Top(tile) + y) * image.width + grid.Left(tile);
        const float* const row = from + y / grid.zoom * shape[3];
        for (int64_t x = 0; x < grid.width; ++x) {
          line[x] = levels.Of(row[x / grid.zoom]);
        }
      }
    }
  }
  return image;
}

}  // namespace trainer

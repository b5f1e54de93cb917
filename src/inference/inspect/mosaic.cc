#include "inspect/mosaic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "trainer/image/image_grid.h"

namespace trainer {
namespace {

// Returns the number of columns of the smallest square that holds `count` items.
int64_t SquareColumns(int64_t count) {
  return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
}

// Draws the values of a vector in rows. The rest of the last row is black, like the smallest value.
Image MakeVectorImage(std::span<const float> values) {
  const int64_t columns = SquareColumns(std::ssize(values));
  const int64_t rows = (std::ssize(values) + columns - 1) / columns;
  std::vector<float> square(values.begin(), values.end());
  square.resize(static_cast<size_t>(rows * columns), std::numeric_limits<float>::quiet_NaN());
  return MakeTiles(square, std::array<int64_t, 4>{1, 1, rows, columns});
}

}  // namespace

Image MakeTiles(std::span<const float> values, std::span<const int64_t> shape) {
  const int64_t colors = shape[1] == 3 ? 3 : 1, height = shape[2], width = shape[3];
  const int64_t tiles = std::min(shape[0] * shape[1] / colors, kMosaicTiles);
  const int64_t most = kMosaicSide / SquareColumns(tiles) - 1;  // pixels of a tile's longer side
  if (std::max(height, width) <= most) return MakeImageGrid(values, shape);
  const double factor = static_cast<double>(most) / static_cast<double>(std::max(height, width));
  const auto shrunk = [&](int64_t side) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(side) * factor)));
  };
  Image whole, small;
  whole.channels = static_cast<int>(tiles * colors);
  whole.height = static_cast<int>(height);
  whole.width = static_cast<int>(width);
  const std::span<const float> drawn =
      values.first(static_cast<size_t>(whole.channels * whole.Plane()));
  whole.floats.assign(drawn.begin(), drawn.end());
  ResizeImage(whole, {0, 0, whole.width, whole.height}, shrunk(height), shrunk(width), &small,
              Interpolation::kArea);
  return MakeImageGrid(small.floats,
                       std::array<int64_t, 4>{tiles, colors, small.height, small.width});
}

Image MakeMosaic(std::span<const float> values, std::span<const int64_t> shape) {
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] * shape[rank - 1] == 1) return MakeVectorImage(values);
  const int64_t maps =
      std::accumulate(shape.begin(), shape.end() - 2, int64_t{1}, std::multiplies());
  return MakeTiles(values, std::array<int64_t, 4>{maps, 1, shape[rank - 2], shape[rank - 1]});
}

}  // namespace trainer

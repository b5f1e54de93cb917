#include "augment/affine_warp.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "augment/pixel_rows.h"

namespace trainer {
namespace {

constexpr int kPointBits = 16;   // fractional bits of a coordinate
constexpr int kWeightBits = 11;  // of a weight: 255 * 2^22 fits in 32 bits

int64_t FixedPoint(double value) {
  return static_cast<int64_t>(std::floor(value * (1 << kPointBits) + 0.5));
}

// The points of the old image that the middles of a row's pixels show.
struct RowPoints {
  int64_t x, y;            // of the first pixel
  int64_t x_step, y_step;  // from one pixel to the next
};

// The old image: a copy of the part without gaps.
struct OldImage {
  const uint8_t* pixels;
  int64_t height, width;
  bool Holds(int64_t x, int64_t y) const { return x >= 0 && x < width && y >= 0 && y < height; }
};

void WarpRowNearest(const OldImage& old, RowPoints at, const WarpStyle& style, int64_t y,
                    const PixelSpan& part) {
  const int64_t plane = old.height * old.width;
  for (int64_t x = 0; x < part.width; ++x, at.x += at.x_step, at.y += at.y_step) {
    const int64_t column = at.x >> kPointBits, row = at.y >> kPointBits;
    const bool inside = old.Holds(column, row);
    const int64_t from = row * old.width + column;
    for (int c = 0; c < part.channels; ++c) {
      part.Row(c, y)[x] = inside ? old.pixels[c * plane + from] : FillOf(style.fill, c);
    }
  }
}

// A coordinate between two pixels: their places and the weight of the second one.
struct Between {
  int64_t first, second;
  uint32_t weight;
  Between(int64_t point, int64_t size) {
    const int64_t from = point - (1 << (kPointBits - 1));  // whole at the middle of a pixel
    const int64_t place = from >> kPointBits;
    weight = static_cast<uint32_t>(from & ((1 << kPointBits) - 1)) >> (kPointBits - kWeightBits);
    first = std::clamp<int64_t>(place, 0, size - 1);
    second = std::clamp<int64_t>(place + 1, 0, size - 1);
  }
};

void WarpRowBilinear(const OldImage& old, RowPoints at, const WarpStyle& style, int64_t y,
                     const PixelSpan& part) {
  constexpr uint32_t kOne = 1u << kWeightBits, kHalf = 1u << (2 * kWeightBits - 1);
  const int64_t plane = old.height * old.width;
  for (int64_t x = 0; x < part.width; ++x, at.x += at.x_step, at.y += at.y_step) {
    if (!old.Holds(at.x >> kPointBits, at.y >> kPointBits)) {
      for (int c = 0; c < part.channels; ++c) part.Row(c, y)[x] = FillOf(style.fill, c);
      continue;
    }
    const Between across(at.x, old.width), down(at.y, old.height);
    for (int c = 0; c < part.channels; ++c) {
      const uint8_t* const above = old.pixels + c * plane + down.first * old.width;
      const uint8_t* const below = old.pixels + c * plane + down.second * old.width;
      const auto mixed = [&](const uint8_t* row) {
        return row[across.first] * (kOne - across.weight) + row[across.second] * across.weight;
      };
      const uint32_t sum = mixed(above) * (kOne - down.weight) + mixed(below) * down.weight;
      part.Row(c, y)[x] = static_cast<uint8_t>((sum + kHalf) >> (2 * kWeightBits));
    }
  }
}

}  // namespace

AffineMap MapOf(const AffineChange& change, int64_t height, int64_t width) {
  const auto radians = [](double degrees) { return degrees * std::numbers::pi / 180; };
  const double turn = radians(change.degrees);
  const double shear_x = std::tan(radians(change.shear_x)), shear_y = radians(change.shear_y);
  // The rotation times the shears, [a, b; c, d], whose determinant is 1.
  const double a = std::cos(turn - shear_y) / std::cos(shear_y);
  const double c = std::sin(turn - shear_y) / std::cos(shear_y);
  const double b = -a * shear_x - std::sin(turn), d = -c * shear_x + std::cos(turn);
  const double middle_x = static_cast<double>(width) / 2;
  const double middle_y = static_cast<double>(height) / 2;
  const double x = middle_x + change.shift_x, y = middle_y + change.shift_y;  // shows the middle
  AffineMap map{d / change.scale, -b / change.scale, 0, -c / change.scale, a / change.scale, 0};
  map.x0 = middle_x - map.xx * x - map.xy * y;
  map.y0 = middle_y - map.yx * x - map.yy * y;
  return map;
}

void WarpAffine(const AffineMap& map, const WarpStyle& style, const PixelSpan& part) {
  const OldImage old{CopyPixels(part), part.height, part.width};
  RowPoints row{FixedPoint(map.x0 + (map.xx + map.xy) / 2),
                FixedPoint(map.y0 + (map.yx + map.yy) / 2), FixedPoint(map.xx), FixedPoint(map.yx)};
  const int64_t x_down = FixedPoint(map.xy), y_down = FixedPoint(map.yy);
  for (int64_t y = 0; y < part.height; ++y, row.x += x_down, row.y += y_down) {
    style.bilinear ? WarpRowBilinear(old, row, style, y, part)
                   : WarpRowNearest(old, row, style, y, part);
  }
}

}  // namespace trainer

#include "augment/byte_changes.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "augment/pixel_rows.h"

namespace trainer {
namespace {

// Blends two bytes: from + factor * (to - from), rounded to a float after each operation and cut
// off. The products are in a table, so that no compiler fuses them with the sums.
class ByteBlend {
 public:
  explicit ByteBlend(float factor) {
    for (int i = 0; i < kDifferences; ++i) {
      products_[static_cast<size_t>(i)] = factor * static_cast<float>(i - kMost);
    }
  }
  uint8_t operator()(int from, int to) const {
    const float value =
        static_cast<float>(from) + products_[static_cast<size_t>(to - from + kMost)];
    return static_cast<uint8_t>(std::clamp(value, 0.0f, static_cast<float>(kMost)));
  }

 private:
  static constexpr int kMost = 255, kDifferences = 2 * kMost + 1;
  std::array<float, kDifferences> products_;
};

template <class Change>
ByteTable TableOf(const Change& change) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = change(i);
  return table;
}

// Returns the grey value of a pixel, with the weights and the rounding of Pillow's mode L. The
// channels of colour images are blue, green and red.
int GreyOf(const PixelSpan& part, int64_t y, int64_t x) {
  if (part.channels == 1) return part.Row(0, y)[x];
  return (part.Row(2, y)[x] * 19595 + part.Row(1, y)[x] * 38470 + part.Row(0, y)[x] * 7471 +
          0x8000) >>
         16;
}

using ByteCounts = std::array<int64_t, 256>;

ByteCounts CountBytes(const PixelSpan& part, int c) {
  ByteCounts counts = {};
  for (int64_t y = 0; y < part.height; ++y) {
    const uint8_t* const row = part.Row(c, y);
    for (int64_t x = 0; x < part.width; ++x) ++counts[row[x]];
  }
  return counts;
}

bool IsCounted(int64_t count) { return count > 0; }

}  // namespace

void FlipRows(const PixelSpan& part) {
  for (int c = 0; c < part.channels; ++c) {
    for (int64_t y = 0; y < part.height / 2; ++y) {
      uint8_t* const row = part.Row(c, y);
      std::swap_ranges(row, row + part.width, part.Row(c, part.height - 1 - y));
    }
  }
}

void ByteBrightness(float factor, const PixelSpan& part) {
  const ByteBlend blend(factor);
  const ByteTable table = TableOf([&](int value) { return blend(0, value); });
  for (int c = 0; c < part.channels; ++c) ReplaceBytes(table, part, c);
}

void ByteContrast(float factor, const PixelSpan& part) {
  int64_t sum = 0;
  for (int64_t y = 0; y < part.height; ++y) {
    for (int64_t x = 0; x < part.width; ++x) sum += GreyOf(part, y, x);
  }
  const int64_t pixels = part.height * part.width;
  const auto mean = static_cast<int>((2 * sum + pixels) / (2 * pixels));
  const ByteBlend blend(factor);
  const ByteTable table = TableOf([&](int value) { return blend(mean, value); });
  for (int c = 0; c < part.channels; ++c) ReplaceBytes(table, part, c);
}

void ByteColor(float factor, const PixelSpan& part) {
  if (part.channels == 1) return;
  const ByteBlend blend(factor);
  for (int64_t y = 0; y < part.height; ++y) {
    for (int64_t x = 0; x < part.width; ++x) {
      const int grey = GreyOf(part, y, x);
      for (int c = 0; c < part.channels; ++c) {
        uint8_t& value = part.Row(c, y)[x];
        value = blend(grey, value);
      }
    }
  }
}

void Sharpness(float factor, const PixelSpan& part) {
  if (part.height < 3 || part.width < 3) return;
  const ByteBlend blend(factor);
  const uint8_t* old = CopyPixels(part);
  const int64_t width = part.width;
  for (int c = 0; c < part.channels; ++c, old += part.height * width) {
    for (int64_t y = 1; y < part.height - 1; ++y) {  // the border is its own smooth image
      uint8_t* const row = part.Row(c, y);
      const uint8_t *const same = old + y * width, *const above = same - width;
      const uint8_t* const below = same + width;
      for (int64_t x = 1; x < width - 1; ++x) {
        const int sum = above[x - 1] + above[x] + above[x + 1] + same[x - 1] + 5 * same[x] +
                        same[x + 1] + below[x - 1] + below[x] + below[x + 1];
        row[x] = blend((2 * sum + 13) / 26, same[x]);
      }
    }
  }
}

void Posterize(int bits, const PixelSpan& part) {
  const auto mask = static_cast<uint8_t>(0xFF << (8 - bits));
  const ByteTable table = TableOf([&](int value) { return static_cast<uint8_t>(value & mask); });
  for (int c = 0; c < part.channels; ++c) ReplaceBytes(table, part, c);
}

void Solarize(float threshold, const PixelSpan& part) {
  const ByteTable table = TableOf([&](int value) {
    return static_cast<uint8_t>(static_cast<float>(value) < threshold ? value : 255 - value);
  });
  for (int c = 0; c < part.channels; ++c) ReplaceBytes(table, part, c);
}

void AutoContrast(const PixelSpan& part) {
  for (int c = 0; c < part.channels; ++c) {
    const ByteCounts counts = CountBytes(part, c);
    const auto low = std::ranges::find_if(counts, IsCounted) - counts.begin();
    const auto high = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), IsCounted) - 1;
    if (high <= low) continue;
    const double scale = 255.0 / static_cast<double>(high - low);
    const double offset = -static_cast<double>(low) * scale;
    ReplaceBytes(TableOf([&](int value) {
                   return static_cast<uint8_t>(std::clamp(value * scale + offset, 0.0, 255.0));
                 }),
                 part, c);
  }
}

void Equalize(const PixelSpan& part) {
  for (int c = 0; c < part.channels; ++c) {
    const ByteCounts counts = CountBytes(part, c);
    const int64_t last = *std::find_if(counts.rbegin(), counts.rend(), IsCounted);
    const int64_t step = (part.height * part.width - last) / 255;
    if (step == 0) continue;   // also if all values are equal
    int64_t below = step / 2;  // bytes that are smaller
    ReplaceBytes(TableOf([&](int value) {
                   const int64_t rank = below / step;
                   below += counts[static_cast<size_t>(value)];
                   return static_cast<uint8_t>(std::min<int64_t>(rank, 255));
                 }),
                 part, c);
  }
}

}  // namespace trainer

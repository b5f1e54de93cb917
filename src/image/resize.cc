#include <algorithm>
#include <cmath>

#include "trainer/image/image.h"

namespace trainer {
namespace {

constexpr int kBits = 11;  // of a weight's fraction: two products and their sum fit 32 bits

// Output i is (2^kBits - weight) parts of element `low` and `weight` parts of `high`.
struct Tap {
  int low = 0, high = 0, weight = 0;
};

// The centre of output i lies at (i + 0.5) * from / to - 0.5; outside the first and last centre the
// border's own value counts.
std::vector<Tap> Taps(int from, int to) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  const double step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    const double at = std::clamp((i + 0.5) * step - 0.5, 0.0, static_cast<double>(from - 1));
    Tap& tap = taps[static_cast<size_t>(i)];
    tap.low = static_cast<int>(at);
    tap.high = std::min(tap.low + 1, from - 1);
    tap.weight = static_cast<int>(std::lround((at - tap.low) * (1 << kBits)));
  }
  return taps;
}

int Blend(int low, int high, int weight) { return (low << kBits) + (high - low) * weight; }

}  // namespace

void ResizeImage(const Image& from, const Box& box, int height, int width, Image* to) {
  const std::vector<Tap> rows = Taps(box.height, height), columns = Taps(box.width, width);
  to->channels = from.channels;
  to->height = height;
  to->width = width;
  to->pixels.resize(static_cast<size_t>(from.channels) * static_cast<size_t>(to->Plane()));
  uint8_t* out = to->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* corner =
        from.pixels.data() + c * from.Plane() + int64_t{box.top} * from.width + box.left;
    for (const Tap& row : rows) {
      const uint8_t* low = corner + int64_t{row.low} * from.width;
      const uint8_t* high = corner + int64_t{row.high} * from.width;
      for (const Tap& column : columns) {
        const int64_t above = Blend(low[column.low], low[column.high], column.weight);
        const int64_t below = Blend(high[column.low], high[column.high], column.weight);
        const int64_t sum = (above << kBits) + (below - above) * row.weight;
        *out++ = static_cast<uint8_t>((sum + (1 << (2 * kBits - 1))) >> (2 * kBits));
      }
    }
  }
}

}  // namespace trainer

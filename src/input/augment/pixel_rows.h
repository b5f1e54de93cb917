#pragma once
// Access to the pixels of a PixelSpan, for changes of its bytes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "trainer/input/augment.h"

namespace trainer {

// Returns a copy of the part, (C, H, W) without gaps. It is valid until this thread's next call.
inline const uint8_t* CopyPixels(const PixelSpan& part) {
  thread_local std::vector<uint8_t> copy;
  copy.resize(static_cast<size_t>(part.channels * part.height * part.width));
  uint8_t* to = copy.data();
  for (int c = 0; c < part.channels; ++c) {
    for (int64_t y = 0; y < part.height; ++y, to += part.width) {
      std::copy_n(part.Row(c, y), part.width, to);
    }
  }
  return copy.data();
}

// Returns the value of channel c: `fill` holds nothing (0), one for all, or one per channel.
inline uint8_t FillOf(const std::vector<uint8_t>& fill, int c) {
  return fill.empty() ? 0 : fill[fill.size() > 1 ? static_cast<size_t>(c) : 0];
}

using ByteTable = std::array<uint8_t, 256>;

// Replaces each byte of channel c by its entry of the table.
inline void ReplaceBytes(const ByteTable& table, const PixelSpan& part, int c) {
  for (int64_t y = 0; y < part.height; ++y) {
    uint8_t* const row = part.Row(c, y);
    for (int64_t x = 0; x < part.width; ++x) row[x] = table[row[x]];
  }
}

}  // namespace trainer

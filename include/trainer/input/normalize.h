#pragma once

#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// A window of a picture (C, H, W): its first element in each channel, and whether it is mirrored.
struct CropOffset {
  int32_t start = 0, mirrored = 0;
};

// The part of an image (H, W) that the next image of the batch replaces: rows from `top` to below
// `bottom`, columns from `left` to below `right`.
struct CutBox {
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  HD bool IsEmpty() const { return bottom <= top || right <= left; }
  HD bool Holds(int64_t h, int64_t w) const {
    return h >= top && h < bottom && w >= left && w < right;
  }
};

// Which element of a picture with this row and plane is (h, w, c) of the window, `width` wide.
HD int64_t ElementOf(const CropOffset& window, int64_t row, int64_t plane, int64_t width, int64_t h,
                     int64_t w, int64_t c) {
  const int64_t column = window.mirrored != 0 ? width - 1 - w : w;
  return c * plane + window.start + h * row + column;
}

// Converts a pixel to an element of a batch. Host and device compute the same bits.
template <class T>
HD float PixelNumber(T pixel, float mean, float scale) {
  return (static_cast<float>(pixel) - mean) * scale;
}

// Mixes two images; the first has the weight `share`. Products of floats are exact in double
// precision, so the result does not depend on whether a compiler uses FMA.
HD float MixedNumber(float share, float item, float other) {
  return static_cast<float>(static_cast<double>(share) * item +
                            static_cast<double>(1 - share) * other);
}

}  // namespace trainer

#pragma once

#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// Which part of a picture (C, H, W) is taken: the number of its first element in each channel, and
// whether it is mirrored.
struct CropOffset {
  int32_t start = 0, mirrored = 0;
};

// Which element of the picture, of rows of `row` and channels of `plane` elements, is element
// (h, w, c) of its window, which is `width` wide.
HD int64_t ElementOf(const CropOffset& window, int64_t row, int64_t plane, int64_t width, int64_t h,
                     int64_t w, int64_t c) {
  const int64_t column = window.mirrored != 0 ? width - 1 - w : w;
  return c * plane + window.start + h * row + column;
}

}  // namespace trainer

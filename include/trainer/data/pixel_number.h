#pragma once

#include "trainer/base/host_device.h"

namespace trainer {

// What a pixel becomes as a number of a batch, on the host or on the device alike, bit for bit.
template <class T>
HD float PixelNumber(T pixel, float mean, float scale) {
  return (static_cast<float>(pixel) - mean) * scale;
}

}  // namespace trainer

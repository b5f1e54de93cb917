#pragma once

#include "trainer/base/host_device.h"

namespace trainer {

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

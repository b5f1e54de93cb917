#pragma once

#include "trainer/base/host_device.h"

namespace trainer {

// What a pixel becomes as a number of a batch, on the host or on the device alike, bit for bit.
template <class T>
HD float PixelNumber(T pixel, float mean, float scale) {
  return (static_cast<float>(pixel) - mean) * scale;
}

// Of two images that are mixed, of which the first keeps `share`. Products of floats are exact in
// double precision, so that it makes no difference where a compiler fuses one with the sum.
HD float MixedNumber(float share, float item, float other) {
  return static_cast<float>(static_cast<double>(share) * item +
                            static_cast<double>(1 - share) * other);
}

}  // namespace trainer

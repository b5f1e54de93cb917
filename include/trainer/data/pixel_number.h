#pragma once

#include "trainer/base/host_device.h"

namespace trainer {

// What a pixel becomes as a number of a batch, on the host or on the device alike, bit for bit.
template <class T>
HD float PixelNumber(T pixel, float mean, float scale) {
  return (static_cast<float>(pixel) - mean) * scale;
}

// Of two images that are mixed, of which the first keeps `share`: three roundings everywhere, also
// where a compiler may make one of a product and a sum.
HD float MixedNumber(float share, float item, float other) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(share, item), __fmul_rn(1 - share, other));
#else
  return share * item + (1 - share) * other;
#endif
}

}  // namespace trainer

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// exp(x) within 2 units of the last place, in a form that compilers vectorise. Overflows to
// infinity, underflows to 0; NaN stays NaN.
//
// exp(x) = 2^n * exp(r) with n = round(x / ln 2); adding 1.5 * 2^23 rounds to a whole number and
// leaves it in the low bits. exp(r) - 1 - r over r^2 is a degree-4 polynomial fitted to
// |r| <= ln(2) / 2 with relative error 3e-9; 2^n is applied in two halves, since n reaches 128.
HD float Exp(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  constexpr float kRound = 12582912.0f;
  const float low = x < -104.0f ? -104.0f : x;
  const float bounded = low > 89.0f ? 89.0f : low;
  const float shifted = bounded * 1.44269504f + kRound;
  const float whole = shifted - kRound;
  const float r = (bounded - whole * 0.693145752f) - whole * 1.42860677e-6f;
  float p = 0.0013814599f;
  p = p * r + 0.008368717f;
  p = p * r + 0.04166839f;
  p = p * r + 0.16666521f;
  p = p * r + 0.49999994f;
  const float fraction = 1.0f + (r + r * r * p);
  const uint32_t n = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  const float scale1 = std::bit_cast<float>((half + 127u) << 23);
  const float scale2 = std::bit_cast<float>((n - half + 127u) << 23);
  return fraction * scale1 * scale2;
#endif
}

// 1 / (1 + exp(-x)), without overflow on either side.
HD float Logistic(float x) { return 1.0f / (1.0f + Exp(-x)); }

}  // namespace trainer

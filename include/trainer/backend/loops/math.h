#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// Computes exp(x) within 2 units of the last place, in a form that compilers vectorise. Overflows
// to infinity, underflows to 0; NaN stays NaN.
//
// exp(x) = 2^n * exp(r) with n = round(x / ln 2); adding 1.5 * 2^23 rounds to an integer and leaves
// it in the low bits. (exp(r) - 1 - r) / r^2 is approximated by a degree-4 polynomial fitted to |r|
// <= ln(2) / 2 with relative error 3e-9. 2^n is applied as two factors, because n reaches 128.
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

// Computes tanh(x) within 3 units of the last place. Near 0, (tanh(x) - x) / x^3 is approximated by
// a degree-4 polynomial in x^2 fitted to |x| <= 0.63 with relative error 5e-9; elsewhere tanh(x) =
// 1 - 2 / (exp(2x) + 1).
HD float Tanh(float x) {
  const float size = fabsf(x), square = x * x;
  float p = -0.005666976f;
  p = p * square + 0.020606175f;
  p = p * square - 0.053730007f;
  p = p * square + 0.13331331f;
  p = p * square - 0.33333278f;
  const float near = x + x * square * p;
  const float far = copysignf(1.0f - 2.0f / (Exp(2.0f * size) + 1.0f), x);
  return size < 0.625f ? near : far;
}

// Computes erf(x) within 3 units of the last place, in a form that compilers vectorise, unlike
// erff. For |x| < 1, erf(x) / x is a degree-6 polynomial in x^2, fitted with a relative error of
// 1.3e-9; beyond, erf(x) = 1 - 1 / q(x)^4 with a degree-8 polynomial q, fitted with an error of
// 3.5e-8. Both are short chains without Exp, because a loop over them is bound by their latency.
HD float Erf(float x) {
#ifdef __CUDA_ARCH__
  return erff(x);
#else
  const float size = fabsf(x), square = x * x;
  float p = 7.853854e-05f;
  p = p * square - 0.00080101914f;
  p = p * square + 0.0051883273f;
  p = p * square - 0.026853811f;
  p = p * square + 0.112835854f;
  p = p * square - 0.37612626f;
  p = p * square + 1.1283791f;
  float q = 0.00866943445f;
  q = q * size - 0.0908218274f;
  q = q * size + 0.448186396f;
  q = q * size - 1.25413535f;
  q = q * size + 2.2619803f;
  q = q * size - 2.46713117f;
  q = q * size + 1.99321498f;
  q = q * size - 0.437423956f;
  q = q * size + 1.12534379f;
  const float q2 = q * q;
  const float far = copysignf(1.0f - 1.0f / (q2 * q2), x);
  return size < 1.0f ? p * x : far;
#endif
}

// Computes 1 / (1 + exp(-x)) without overflow on either side.
HD float Logistic(float x) { return 1.0f / (1.0f + Exp(-x)); }

}  // namespace trainer

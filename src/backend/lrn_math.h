#pragma once
// The steps of local response normalisation, one functor each.

#include <bit>
#include <cfloat>
#include <cmath>

#include "trainer/tensor/tensor.h"

namespace trainer {

// Computes |s|^(-1/4) within 2 units of the last place, in a form that compilers vectorise. Values
// below FLT_MIN count as FLT_MIN; infinity gives 0 and NaN gives NaN. A guess from the exponent's
// bits, off by at most 3 %, is improved by the series of (1 - h)^(-1/4), h = 1 - s * guess^4, first
// up to h^3 and then up to h.
HD float InverseFourthRoot(float s) {
#ifdef __CUDA_ARCH__
  return rsqrtf(sqrtf(fabsf(s)));
#else
  const int32_t bits = std::bit_cast<int32_t>(s) & 0x7fffffff;
  const int32_t least = bits < 0x800000 ? 0x800000 : bits;
  const float bounded = std::bit_cast<float>(least);
  float y = std::bit_cast<float>(0x4f586000 - (least >> 2));
  float h = 1 - bounded * ((y * y) * (y * y));
  y += y * h * (0.25f + h * (0.15625f + h * 0.1171875f));
  h = 1 - bounded * ((y * y) * (y * y));
  return bits == 0x7f800000 ? 0.0f : y + y * h * 0.25f;
#endif
}

// Norm computes s^-beta; Both also computes s^(-beta - 1).
struct UsualPower {  // beta = 0.75, Caffe's default
  HD float Norm(float s) const {
    const float root = InverseFourthRoot(s);
    return root * root * root;
  }
  HD void Both(float s, float* norm, float* slope) const {
    const float root = InverseFourthRoot(s), half = root * root;
    *norm = half * root;
    *slope = half * root * half * half;
  }
};
// Norm computes s^-beta and Both also s^(-beta - 1), for any beta.
struct AnyPower {
  float beta;
  HD float Norm(float s) const { return powf(s, -beta); }
  HD void Both(float s, float* norm, float* slope) const {
    *norm = powf(s, -beta);
    *slope = *norm / s;
  }
};

// Calls f with the power functor for `beta`.
template <class F>
auto WithLrnPower(float beta, F f) {
  return beta == 0.75f ? f(UsualPower{}) : f(AnyPower{beta});
}

// Computes the square of an element.
template <class T>
struct SquareOf {
  const T* x;
  HD float operator()(int64_t at) const { return Load(x[at]) * Load(x[at]); }
};
// Returns an element itself.
struct NumberOf {
  const float* x;
  HD float operator()(int64_t at) const { return x[at]; }
};

// Returns f(at + c - half) + ... + f(at + c + half), without terms outside the channels.
template <class F, class Index>
HD float SumAround(const F& f, Index at, Index c, Index channels, Index half) {
  const Index first = c < half ? 0 : c - half;
  const Index last = c + half < channels ? c + half : channels - 1;
  float s = 0;
  for (Index i = first; i <= last; ++i) s += f(at + i);
  return s;
}

// One row per pixel: sets sum[c] to the sum around c.
template <class F>
struct SumAcross {
  F f;
  float* sum;
  int64_t channels, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * channels;
    row.ForEach([&](int64_t c) { sum[at + c] = SumAround(f, at, c, channels, half); });
  }
};

// One row per pixel: sums each channel over the pixels at most `half` away along both axes.
template <class F>
struct SumWithin {
  F f;
  float* sum;
  int64_t channels, height, width, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t to = row.index * channels;
    const int64_t w = row.index % width, h = row.index / width % height;
    const int64_t corner = (row.index - h * width - w) * channels;
    const int64_t top = h < half ? 0 : h - half, left = w < half ? 0 : w - half;
    const int64_t bottom = h + half < height ? h + half : height - 1;
    const int64_t right = w + half < width ? w + half : width - 1;
    row.ForEach([&](int64_t c) { sum[to + c] = 0; });
    for (int64_t y = top; y <= bottom; ++y) {
      for (int64_t x = left; x <= right; ++x) {
        const int64_t from = corner + (y * width + x) * channels;
        row.ForEach([&](int64_t c) { sum[to + c] += f(from + c); });
      }
    }
  }
};

// Sets base = k + factor * (sum of squares) and y = x * base^-beta. `base` holds the sum of squares
// before.
template <class T, class Power>
struct LrnNormalize {
  const T* x;
  float* base;
  T* y;
  float k, factor;
  Power power;
  HD void operator()(int64_t i) const { Put(i, base[i]); }
  // Computes base and y of element i from the given sum of squares.
  HD void Put(int64_t i, float squares) const {
    const float s = k + factor * squares;
    base[i] = s;
    Store(y[i], Load(x[i]) * power.Norm(s));
  }
};

// Computes an element's contribution to the gradients of its neighbours, without the factor of
// their own x: dy * x * base^(-beta-1).
template <class T, class Power>
struct LrnShare {
  const T *x, *dy;
  const float* base;
  float* out;
  Power power;
  HD void operator()(int64_t i) const { out[i] = Value(i); }
  // Returns the contribution of element i.
  HD float Value(int64_t i) const {
    float norm, slope;
    power.Both(base[i], &norm, &slope);
    return Load(dy[i]) * Load(x[i]) * slope;
  }
};

// Sets dx = dy * base^-beta - 2 * factor * beta * x * (sum of the neighbours' shares). `sums` may
// be dx.
template <class T, class Power>
struct LrnGradient {
  const T *x, *dy;
  const float *base, *sums;
  T* dx;
  Power power;
  float slope;
  HD void operator()(int64_t i) const { Put(i, sums[i]); }
  // Computes dx of element i from the given sum of its neighbours' shares.
  HD void Put(int64_t i, float shares) const {
    Store(dx[i], Load(dy[i]) * power.Norm(base[i]) - slope * Load(x[i]) * shares);
  }
};

}  // namespace trainer

#pragma once
// The passes of a BatchNorm over its tensors, one functor each; x, y and their gradients are stored
// as T. With the layers that it takes over:
//   z = (x - mean) / sqrt(variance + eps);  y = max(0, z * scale + shift + other)
// where scale, shift, `other` and the maximum with 0 may each be absent.

#include "trainer/backend/pixel_chunks.h"

namespace trainer {

struct Pair {
  float a = 0, b = 0;
};

// Mean, inverse and factor of each channel.
inline size_t BatchNormWorkspace(const PixelChunks& in) {
  return 3 * static_cast<size_t>(in.rows.length) * sizeof(float);
}
// Two means per channel, then two sums per channel of each chunk.
inline size_t BatchNormScratch(const PixelChunks& in) {
  return 2 * static_cast<size_t>((in.chunks + 1) * in.rows.length) * sizeof(float);
}

// What a channel's numbers are multiplied with and shifted by; null where there is none.
struct ChannelAffine {
  const float *scale = nullptr, *shift = nullptr;

  HD float Scale(int64_t c) const { return scale == nullptr ? 1.0f : scale[c]; }
  HD float Shift(int64_t c) const { return shift == nullptr ? 0.0f : shift[c]; }
};

// The sums of d and d^2, d the distance from the chunk's first pixel: what is squared stays of the
// size of the deviations, so that the difference of the sums keeps its digits.
template <class T>
struct Deviations {
  const T* x;
  HD Pair operator()(int64_t at, int64_t first, int64_t) const {
    const float d = Load(x[at]) - Load(x[first]);
    return {d, d * d};
  }
};

// The mean and the variance of a channel from its chunks' deviations.
// Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances" (1979).
template <class T>
struct MomentsOfChunks {
  const T* x;
  const float* sums;  // of SumPairs
  PixelChunks in;
  float *mean, *variance;

  HD void operator()(int64_t c) const {
    const int64_t channels = in.rows.length;
    double count = 0, middle = 0, squares = 0;
    for (int64_t k = 0; k < in.chunks; ++k) {
      const int64_t begin = k * in.chunk_rows, wish = begin + in.chunk_rows;
      const double n = static_cast<double>((wish < in.rows.count ? wish : in.rows.count) - begin);
      const double sum = sums[2 * k * channels + c], sum_squares = sums[(2 * k + 1) * channels + c];
      const double own = Load(x[in.rows.Start(begin) + c * in.rows.inner]) + sum / n;
      const double gap = own - middle, both = count + n;
      squares += sum_squares - sum * sum / n + gap * gap * count * n / both;
      middle += gap * n / both;
      count = both;
    }
    mean[c] = static_cast<float>(middle);
    variance[c] = static_cast<float>(squares > 0 ? squares / count : 0);
  }
};

// The mean over all pixels of both sums; what is not null gets the sums themselves added.
struct MeansOfChunks {
  const float* sums;
  PixelChunks in;
  float *a, *b;
  float *add_a, *add_b;

  HD void operator()(int64_t c) const {
    const int64_t channels = in.rows.length;
    double sum_a = 0, sum_b = 0;
    for (int64_t k = 0; k < in.chunks; ++k) {
      sum_a += sums[2 * k * channels + c];
      sum_b += sums[(2 * k + 1) * channels + c];
    }
    const auto pixels = static_cast<double>(in.rows.count);
    a[c] = static_cast<float>(sum_a / pixels);
    b[c] = static_cast<float>(sum_b / pixels);
    const auto count = static_cast<float>(in.rows.count);
    if (add_a != nullptr) add_a[c] += a[c] * count;
    if (add_b != nullptr) add_b[c] += b[c] * count;
  }
};

// inverse = 1 / sqrt(variance + eps), factor = scale * inverse. `inverse` holds the variance
// before.
struct FactorOf {
  float* inverse;
  float eps;
  ChannelAffine affine;
  float* factor;
  HD void operator()(int64_t c) const {
    InverseRoot{inverse, eps}(c);
    factor[c] = inverse[c] * affine.Scale(c);
  }
};

// y from x. kRelu: whether negative numbers become 0.
template <class T, bool kRelu>
struct Normalize {
  const T* x;
  const float *mean, *factor, *shift;

  HD float Value(int64_t at, int64_t c) const {
    const float z = (Load(x[at]) - mean[c]) * factor[c];
    return shift == nullptr ? z : z + shift[c];
  }
  HD float operator()(int64_t at, int64_t c) const {
    const float v = Value(at, c);
    return kRelu && v <= 0 ? 0.0f : v;
  }
};
template <class T, bool kRelu>
struct NormalizeAndAdd {
  Normalize<T, false> normalize;
  const T* other;
  HD float operator()(int64_t at, int64_t c) const {
    const float v = normalize.Value(at, c) + Load(other[at]);
    return kRelu && v <= 0 ? 0.0f : v;
  }
};

// The gradient of z * scale + shift [+ other]: dy, where a maximum with 0 let y through.
template <class T>
struct PlainGradient {
  const T* dy;
  HD float operator()(int64_t at, int64_t) const { return Load(dy[at]); }
};
template <class T>
struct MaskedByOutput {  // y itself is at hand
  const T *dy, *y;
  HD float operator()(int64_t at, int64_t) const { return Load(y[at]) > 0 ? Load(dy[at]) : 0.0f; }
};
template <class T>
struct MaskedByInput {  // y is computed from x once more
  const T* dy;
  Normalize<T, false> normalize;
  HD float operator()(int64_t at, int64_t c) const {
    return normalize.Value(at, c) > 0 ? Load(dy[at]) : 0.0f;
  }
};
// The same, written to `to` when it is computed. No element may be computed twice.
template <class T, class G>
struct WrittenThrough {
  G g;
  T* to;
  HD float operator()(int64_t at, int64_t c) const {
    Store(to[at], g(at, c));
    return Load(to[at]);
  }
};

// z: the output y where that is all, else from x.
template <class T>
struct NormalFromOutput {
  const T* y;
  HD float operator()(int64_t at, int64_t) const { return Load(y[at]); }
};
template <class T>
struct NormalFromInput {
  const T* x;
  const float *mean, *inverse;
  HD float operator()(int64_t at, int64_t c) const { return (Load(x[at]) - mean[c]) * inverse[c]; }
};

// The sums of g and g * z.
template <class G, class Z>
struct GradientSums {
  G g;
  Z z;
  HD Pair operator()(int64_t at, int64_t, int64_t c) const {
    const float v = g(at, c);
    return {v, v * z(at, c)};
  }
};

// dx = (g - mean g - z * mean (g * z)) * scale / sqrt(variance + eps)
template <class G, class Z>
struct InputGradient {
  G g;
  Z z;
  const float *factor, *mean_g, *mean_gz;
  HD float operator()(int64_t at, int64_t c) const {
    return (g(at, c) - mean_g[c] - z(at, c) * mean_gz[c]) * factor[c];
  }
};
// Stored moments are constants.
template <class G>
struct ScaledGradient {
  G g;
  const float* factor;
  HD float operator()(int64_t at, int64_t c) const { return g(at, c) * factor[c]; }
};

}  // namespace trainer

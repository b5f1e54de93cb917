#include <immintrin.h>

#include <algorithm>

#include "cpu/conv/winograd.h"
#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// The N points are 0, p and -p for each p of kPairs, and infinity. Let N(t) be t times the product
// of all (t^2 - p^2). Row p of B^T holds the coefficients of N(t) / (t - p), and its row for
// infinity the coefficients of N(t). Row p of A and of G holds the powers of p, and the row for
// infinity only a 1 at the end. G's rows are divided by N'(p).
template <int N>
struct Points;
template <>
struct Points<6> {
  static constexpr float kPairs[] = {0.625f, 1.5f};
};
template <>
struct Points<8> {
  static constexpr float kPairs[] = {0.5f, 1, 2};
};

// The coefficients of these matrices that depend on the points.
template <int N>
struct Factors {
  static constexpr int kPairs = N / 2 - 1;
  // coefficients of powers of t^2 in the product of all (t^2 - p^2)
  float all[kPairs + 1] = {1};
  float others[kPairs][kPairs]{};  // coefficients without pair i
  float scales[N]{};               // 1 / N'(point)

  constexpr Factors() {
    scales[N - 1] = 1;
    for (int i = 0; i < kPairs; ++i) Grow(all, i, Square(i));
    scales[0] = 1 / all[0];
    for (int i = 0; i < kPairs; ++i) {
      others[i][0] = 1;
      float slope = 2 * Square(i);
      for (int j = 0, degree = 0; j < kPairs; ++j) {
        if (j == i) continue;
        Grow(others[i], degree++, Square(j));
        slope *= Square(i) - Square(j);
      }
      scales[1 + 2 * i] = scales[2 + 2 * i] = 1 / slope;
    }
  }

 private:
  static constexpr float Square(int i) { return Points<N>::kPairs[i] * Points<N>::kPairs[i]; }
  // Multiplies a polynomial of this degree in u = t^2 by (u - square).
  static constexpr void Grow(float* polynomial, int degree, float square) {
    for (int k = degree + 1; k > 0; --k) {
      polynomial[k] = polynomial[k - 1] - square * (k <= degree ? polynomial[k] : 0);
    }
    polynomial[0] *= -square;
  }
};
template <int N>
constexpr Factors<N> kFactors;

#define WINOGRAD_LAMBDA \
  __attribute__((always_inline, target("arch=x86-64-v4,prefer-vector-width=512")))
#define WINOGRAD_INLINE TRAINER_AVX512 TRAINER_INLINE

// Returns a * x + y.
WINOGRAD_INLINE __m512 MulAdd(float a, const __m512& x, const __m512& y) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), x, y);
}

// Returns the sum over k < D of factors[k] x[2 k], plus x[2 D], whose factor is 1.
template <int D>
WINOGRAD_INLINE __m512 Polynomial(const float* factors, const __m512* x) {
  __m512 sum = x[2 * D];
#pragma GCC unroll 4
  for (int k = D - 1; k >= 0; --k) sum = MulAdd(factors[k], x[2 * k], sum);
  return sum;
}

// Computes out = B^T in, for N inputs of a patch along one axis.
template <int N>
struct FromPatch {
  static constexpr int kIn = N, kOut = N, kPairs = N / 2 - 1;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[N], __m512 (&out)[N]) {
    out[0] = Polynomial<kPairs>(kFactors<N>.all, in);
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const float* others = kFactors<N>.others[i];
      const __m512 even = Polynomial<kPairs - 1>(others, in + 2);
      const __m512 odd = Polynomial<kPairs - 1>(others, in + 1);
      const float p = Points<N>::kPairs[i];
      out[1 + 2 * i] = MulAdd(p, odd, even);
      out[2 + 2 * i] = MulAdd(-p, odd, even);
    }
    out[N - 1] = Polynomial<kPairs>(kFactors<N>.all, in + 1);
  }
};

// Evaluates a polynomial at the N points: out = A in, where `in` has its L coefficients, the lowest
// power first. The even and the odd powers are summed once for each pair p and -p; the value at
// infinity is the highest coefficient.
template <int N, int L>
struct Evaluate {
  static constexpr int kIn = L, kOut = N;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[L], __m512 (&out)[N]) {
    out[0] = in[0];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const float p = Points<N>::kPairs[i];
      __m512 even = in[(L - 1) / 2 * 2], odd = in[L / 2 * 2 - 1];
#pragma GCC unroll 4
      for (int k = (L - 1) / 2 * 2 - 2; k >= 0; k -= 2) even = MulAdd(p * p, even, in[k]);
#pragma GCC unroll 4
      for (int k = L / 2 * 2 - 3; k > 0; k -= 2) odd = MulAdd(p * p, odd, in[k]);
      out[1 + 2 * i] = MulAdd(p, odd, even);
      out[2 + 2 * i] = MulAdd(-p, odd, even);
    }
    out[N - 1] = in[L - 1];
  }
};

// Computes out = A^T in for L elements: each is a sum of the values at the points times a power of
// the point.
template <int N, int L>
struct Interpolate {
  static constexpr int kIn = N, kOut = L;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[N], __m512 (&out)[L]) {
    out[0] = in[0] + in[1] + in[2];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const __m512 even = in[1 + 2 * i] + in[2 + 2 * i], odd = in[1 + 2 * i] - in[2 + 2 * i];
      if (i > 0) out[0] += even;
      float power = 1;
#pragma GCC unroll 5
      for (int l = 1; l < L; ++l) {
        power *= Points<N>::kPairs[i];
        const __m512 part = l % 2 == 0 ? even : odd;
        out[l] = i == 0 ? _mm512_set1_ps(power) * part : MulAdd(power, part, out[l]);
      }
    }
    out[L - 1] += in[N - 1];
  }
};

// Applies the transform along both axes. `load(i, j, to)` and `store(i, j, from)` are inlined.
template <class Axis, class LoadAt, class StoreAt>
WINOGRAD_INLINE void Apply2d(LoadAt load, StoreAt store) {
  __m512 half[Axis::kIn][Axis::kOut];
  for (int i = 0; i < Axis::kIn; ++i) {
    __m512 in[Axis::kIn];
#pragma GCC unroll 8
    for (int j = 0; j < Axis::kIn; ++j) load(i, j, in[j]);
    Axis::Apply(in, half[i]);
  }
  for (int j = 0; j < Axis::kOut; ++j) {
    __m512 in[Axis::kIn], out[Axis::kOut];
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kIn; ++i) in[i] = half[i][j];
    Axis::Apply(in, out);
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kOut; ++i) store(i, j, out[i]);
  }
}

// Rows or columns of one patch. Positions outside the image have mask 0 and the offset of a
// position inside.
struct Span {
  int64_t offset[8];
  __mmask16 mask[8];

  Span(int64_t begin, int64_t length, int64_t extent, int64_t step) {
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = std::clamp<int64_t>(begin + i, 0, extent - 1);
      offset[i] = at * step;
      mask[i] = at == begin + i ? 0xffff : 0;
    }
  }
};

// The position of a tile's patch.
struct TileOrigin {
  int64_t image, i, j;  // image; row and column of the first pixel
};
// Returns where the patch of a tile begins; row and column may be negative.
TileOrigin OriginOf(const Patches& p, int64_t tile) {
  const int64_t line = tile / p.across;
  return {line / p.down, line % p.down * p.step - p.ph, tile % p.across * p.step - p.pw};
}

// Transforms the patches of a range of tiles along both axes, 16 channels at a time, and writes
// them to `v`, stored as at the head of winograd.h.
template <class Axis>
TRAINER_AVX512 void PatchesToPoints(const float* images, const Patches& p, const TileRange& range,
                                    float* v) {
  const int64_t point = PointStep(range.channels * range.count);
  for (int64_t t = 0; t < range.count; ++t) {
    const TileOrigin at = OriginOf(p, range.first + t);
    const Span rows(at.i, Axis::kIn, p.h, p.w * p.pixel);
    const Span columns(at.j, Axis::kIn, p.w, p.pixel);
    const float* from = images + at.image * p.h * p.w * p.pixel;
    float* to = v + t * kLanes;
    for (int64_t c = 0; c < range.channels; c += kLanes, to += range.count * kLanes) {
      Apply2d<Axis>(
          [&](int i, int j, __m512& x) WINOGRAD_LAMBDA {
            x = _mm512_maskz_loadu_ps(rows.mask[i] & columns.mask[j],
                                      from + rows.offset[i] + columns.offset[j] + c);
          },
          [&](int i, int j, const __m512& x) WINOGRAD_LAMBDA {
            float* const point_row = to + (i * Axis::kOut + j) * point;
            _mm512_storeu_ps(point_row, x);
            __builtin_prefetch(point_row + range.count * kLanes, 1);  // for the next channels
          });
    }
  }
}

// Implements PointsToOutput; skips the outputs of a tile that are outside the image.
template <int N>
TRAINER_AVX512 void ToOutput(const float* v, const TileRange& range, const float* bias,
                             bool rectify, const Patches& p, float* y) {
  const int64_t point = PointStep(range.channels * range.count);
  for (int64_t t = 0; t < range.count; ++t) {
    const TileOrigin at = OriginOf(p, range.first + t);
    const int64_t rows = p.h - at.i, columns = p.w - at.j;
    float* to = y + ((at.image * p.h + at.i) * p.w + at.j) * p.pixel;
    const float* from = v + t * kLanes;
    for (int64_t m = 0; m < range.channels; m += kLanes, from += range.count * kLanes) {
      const __m512 zero = _mm512_setzero_ps();
      const __m512 start = bias != nullptr ? _mm512_loadu_ps(bias + m) : zero;
      Apply2d<Interpolate<N, kTile>>(
          [&](int i, int j, __m512& x)
              WINOGRAD_LAMBDA { x = _mm512_loadu_ps(from + (i * N + j) * point); },
          [&](int i, int j, const __m512& x) WINOGRAD_LAMBDA {
            if (i >= rows || j >= columns) return;
            __m512 sum = x + start;
            const __mmask16 low = _mm512_cmp_ps_mask(sum, zero, _CMP_LE_OQ);
            if (rectify) sum = _mm512_mask_mov_ps(sum, low, zero);
            _mm512_storeu_ps(to + (i * p.w + j) * p.pixel + m, sum);
          });
    }
  }
}

// Returns the offset of output m's column in the data of a point.
int64_t PanelOffset(int64_t m, int64_t in) { return m / kPanel * kPanel * in + m % kPanel; }
// Returns the distance of the rows of that column: the outputs of its panel.
int64_t PanelWidth(int64_t m, int64_t out) { return std::min(kPanel, out - m / kPanel * kPanel); }

// Implements KernelsToPoints for R x R kernels.
template <int N, int R>
TRAINER_AVX512 void ToPoints(const float* weight, const KernelSteps& s, int64_t c0, int64_t c1,
                             int64_t in, int64_t m, int64_t out, float* u) {
  const int64_t point = PointStep(in * out);
  const int64_t width = PanelWidth(m, out);
  const float* scales = kFactors<N>.scales;
  const __m512i lanes =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(static_cast<int>(s.out_step)));
  for (int64_t c = c0; c < c1; ++c) {
    const float* from = weight + c * s.in_step + m * s.out_step;
    float* to = u + PanelOffset(m, in) + c * width;
    Apply2d<Evaluate<N, R>>(
        [&](int i, int j, __m512& w) WINOGRAD_LAMBDA {
          const int tap = i * R + j;
          w = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, lanes,
                                       from + (s.reversed ? R * R - 1 - tap : tap), 4);
        },
        [&](int i, int j, const __m512& w) WINOGRAD_LAMBDA {
          _mm512_storeu_ps(to + (i * N + j) * point, w * _mm512_set1_ps(scales[i] * scales[j]));
        });
  }
}

// Implements PointsToKernels for R x R kernels.
template <int N, int R>
TRAINER_AVX512 void ToKernels(const float* sums, int64_t parts, int64_t part_step,
                              const KernelSteps& s, int64_t c, int64_t in, int64_t m, int64_t out,
                              float* dweight) {
  alignas(64) float taps[R * R][kLanes];
  const int64_t point = PointStep(in * out);
  const float* from = sums + PanelOffset(m, in) + c * PanelWidth(m, out);
  const float* scales = kFactors<N>.scales;
  Apply2d<Interpolate<N, R>>(
      [&](int i, int j, __m512& sum) WINOGRAD_LAMBDA {
        const float* at = from + (i * N + j) * point;
        sum = _mm512_loadu_ps(at);
        for (int64_t part = 1; part < parts; ++part) {
          sum += _mm512_loadu_ps(at + part * part_step);
        }
        sum *= _mm512_set1_ps(scales[i] * scales[j]);
      },
      [&](int i, int j, const __m512& w) WINOGRAD_LAMBDA { _mm512_store_ps(taps[i * R + j], w); });
  float* to = dweight + c * s.in_step + m * s.out_step;
  for (int64_t lane = 0; lane < kLanes; ++lane, to += s.out_step) {
    for (int tap = 0; tap < R * R; ++tap) to[tap] += taps[tap][lane];
  }
}

}  // namespace

void InputToPoints(const float* x, const Patches& patches, int64_t kernel, const TileRange& range,
                   float* v) {
  if (kernel == 3) return PatchesToPoints<FromPatch<6>>(x, patches, range, v);
  PatchesToPoints<FromPatch<8>>(x, patches, range, v);
}

void GradientToPoints(const float* dy, const Patches& patches, int64_t kernel,
                      const TileRange& range, float* v) {
  if (kernel == 3) return PatchesToPoints<Evaluate<6, kTile>>(dy, patches, range, v);
  PatchesToPoints<Evaluate<8, kTile>>(dy, patches, range, v);
}

void PointsToOutput(const float* v, const TileRange& range, int64_t kernel, const float* bias,
                    bool rectify, const Patches& patches, float* y) {
  if (kernel == 3) return ToOutput<6>(v, range, bias, rectify, patches, y);
  ToOutput<8>(v, range, bias, rectify, patches, y);
}

void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u) {
  if (steps.kernel == 3) return ToPoints<6, 3>(weight, steps, c0, c1, in, m, out, u);
  ToPoints<8, 5>(weight, steps, c0, c1, in, m, out, u);
}

void PointsToKernels(const float* sums, int64_t parts, int64_t part_step, const KernelSteps& steps,
                     int64_t c, int64_t in, int64_t m, int64_t out, float* dweight) {
  if (steps.kernel == 3) {
    return ToKernels<6, 3>(sums, parts, part_step, steps, c, in, m, out, dweight);
  }
  ToKernels<8, 5>(sums, parts, part_step, steps, c, in, m, out, dweight);
}

}  // namespace trainer::cpu

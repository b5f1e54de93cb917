#include <immintrin.h>

#include <algorithm>

#include "cpu/conv_winograd.h"
#include "cpu/lanes.h"

namespace trainer::cpu {
namespace {

// The points 0, a, -a, b, -b and infinity. With N(t) = t (t^2 - a^2) (t^2 - b^2), row p of B^T
// holds the coefficients of N(t) / (t - p), that of infinity those of N(t); row p of A and of G
// holds the powers of p, and that of infinity its last 1 only; G's rows are divided by N'(p).
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB;
constexpr float kScale0 = 1 / (kA2 * kB2);
constexpr float kScaleA = 1 / (2 * kA2 * (kA2 - kB2));
constexpr float kScaleB = 1 / (2 * kB2 * (kB2 - kA2));
constexpr float kScales[6] = {kScale0, kScaleA, kScaleA, kScaleB, kScaleB, 1};

#define WINOGRAD_LAMBDA \
  __attribute__((always_inline, target("arch=x86-64-v4,prefer-vector-width=512")))
#define WINOGRAD_INLINE TRAINER_AVX512 TRAINER_INLINE

WINOGRAD_INLINE __m512 MulAdd(float a, const __m512& x, const __m512& y) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), x, y);
}

// out = B^T in.
struct FromPatch {
  static constexpr int kIn = 6, kOut = 6;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[6], __m512 (&out)[6]) {
    const __m512 even_a = MulAdd(-kB2, in[2], in[4]), odd_a = MulAdd(-kB2, in[1], in[3]);
    const __m512 even_b = MulAdd(-kA2, in[2], in[4]), odd_b = MulAdd(-kA2, in[1], in[3]);
    // x4 - (a^2 + b^2) x2 + a^2 b^2 x0 and the same of the odd ones
    out[0] = MulAdd(kA2 * kB2, in[0], MulAdd(-(kA2 + kB2), in[2], in[4]));
    out[1] = MulAdd(kA, odd_a, even_a);
    out[2] = MulAdd(-kA, odd_a, even_a);
    out[3] = MulAdd(kB, odd_b, even_b);
    out[4] = MulAdd(-kB, odd_b, even_b);
    out[5] = MulAdd(kA2 * kB2, in[1], MulAdd(-(kA2 + kB2), in[3], in[5]));
  }
};

// out = A in, for L numbers: the polynomial with these coefficients at the points.
template <int L>
struct Evaluate {
  static constexpr int kIn = L, kOut = 6;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[L], __m512 (&out)[6]) {
    out[0] = in[0];
    At(kA, in, out[1], out[2]);
    At(kB, in, out[3], out[4]);
    out[5] = in[L - 1];
  }
  static WINOGRAD_INLINE void At(float p, const __m512 (&in)[L], __m512& plus, __m512& minus) {
    __m512 even = in[0], odd = in[1];
    if constexpr (L == 3 || L == 4) even = MulAdd(p * p, in[2], even);
    if constexpr (L == 5) even = MulAdd(p * p, MulAdd(p * p, in[4], in[2]), even);
    if constexpr (L >= 4) odd = MulAdd(p * p, in[3], odd);
    plus = MulAdd(p, odd, even);
    minus = MulAdd(-p, odd, even);
  }
};

// out = A^T in, for L numbers.
template <int L>
struct Interpolate {
  static constexpr int kIn = 6, kOut = L;
  static WINOGRAD_INLINE void Apply(const __m512 (&in)[6], __m512 (&out)[L]) {
    const __m512 even_a = in[1] + in[2], odd_a = in[1] - in[2];
    const __m512 even_b = in[3] + in[4], odd_b = in[3] - in[4];
    out[0] = in[0] + (even_a + even_b);
    float a = kA, b = kB;
#pragma GCC unroll 5
    for (int i = 1; i < L; ++i, a *= kA, b *= kB) {
      out[i] =
          MulAdd(a, i % 2 == 0 ? even_a : odd_a, _mm512_set1_ps(b) * (i % 2 == 0 ? even_b : odd_b));
    }
    out[L - 1] += in[5];
  }
};

// The same along both axes. `load(i, j, to)` and `store(i, j, from)` are inlined.
template <class Axis, class LoadAt, class StoreAt>
WINOGRAD_INLINE void Apply2d(LoadAt load, StoreAt store) {
  __m512 half[Axis::kIn][Axis::kOut];
  for (int i = 0; i < Axis::kIn; ++i) {
    __m512 in[Axis::kIn];
#pragma GCC unroll 6
    for (int j = 0; j < Axis::kIn; ++j) load(i, j, in[j]);
    Axis::Apply(in, half[i]);
  }
  for (int j = 0; j < Axis::kOut; ++j) {
    __m512 in[Axis::kIn], out[Axis::kOut];
#pragma GCC unroll 6
    for (int i = 0; i < Axis::kIn; ++i) in[i] = half[i][j];
    Axis::Apply(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < Axis::kOut; ++i) store(i, j, out[i]);
  }
}

// Rows or columns of one patch: offsets of those inside the image; the others' mask is 0 and their
// offset one of the image.
struct Span {
  int64_t offset[6];
  __mmask16 mask[6];

  Span(int64_t begin, int64_t length, int64_t extent, int64_t step) {
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = std::clamp<int64_t>(begin + i, 0, extent - 1);
      offset[i] = at * step;
      mask[i] = at == begin + i ? 0xffff : 0;
    }
  }
};

struct Place {
  int64_t image, i, j;  // and the first pixel's row and column
};
Place PlaceOf(const Patches& p, int64_t tile) {
  const int64_t line = tile / p.across;
  return {line / p.down, line % p.down * p.step - p.ph, tile % p.across * p.step - p.pw};
}

template <class Axis>
TRAINER_AVX512 void PatchesToPoints(const float* images, const Patches& p, const TileRange& range,
                                    float* v) {
  const int64_t point = PointStep(range.channels * range.count);
  for (int64_t t = 0; t < range.count; ++t) {
    const Place place = PlaceOf(p, range.first + t);
    const Span rows(place.i, Axis::kIn, p.h, p.w * p.pixel);
    const Span columns(place.j, Axis::kIn, p.w, p.pixel);
    const float* from = images + place.image * p.h * p.w * p.pixel;
    float* to = v + t * kLanes;
    for (int64_t c = 0; c < range.channels; c += kLanes, to += range.count * kLanes) {
      Apply2d<Axis>(
          [&](int i, int j, __m512& x) WINOGRAD_LAMBDA {
            x = _mm512_maskz_loadu_ps(rows.mask[i] & columns.mask[j],
                                      from + rows.offset[i] + columns.offset[j] + c);
          },
          [&](int i, int j, const __m512& x) WINOGRAD_LAMBDA {
            float* const at = to + (i * 6 + j) * point;
            _mm512_storeu_ps(at, x);
            __builtin_prefetch(at + range.count * kLanes, 1);  // of the next channels
          });
    }
  }
}

template <int L>
TRAINER_AVX512 void ToOutput(const float* v, const TileRange& range, const float* bias,
                             bool rectify, const Patches& p, float* y) {
  const int64_t point = PointStep(range.channels * range.count);
  for (int64_t t = 0; t < range.count; ++t) {
    const Place place = PlaceOf(p, range.first + t);
    const int64_t rows = p.h - place.i, columns = p.w - place.j;
    float* to = y + ((place.image * p.h + place.i) * p.w + place.j) * p.pixel;
    const float* from = v + t * kLanes;
    for (int64_t m = 0; m < range.channels; m += kLanes, from += range.count * kLanes) {
      const __m512 zero = _mm512_setzero_ps();
      const __m512 start = bias != nullptr ? _mm512_loadu_ps(bias + m) : zero;
      Apply2d<Interpolate<L>>(
          [&](int i, int j, __m512& x)
              WINOGRAD_LAMBDA { x = _mm512_loadu_ps(from + (i * 6 + j) * point); },
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

// Where in a point the panel's column of output m begins, and how far apart its rows are.
int64_t PanelOffset(int64_t m, int64_t in) { return m / kPanel * kPanel * in + m % kPanel; }
int64_t PanelWidth(int64_t m, int64_t out) { return std::min(kPanel, out - m / kPanel * kPanel); }

template <int R>
TRAINER_AVX512 void ToPoints(const float* weight, const KernelSteps& s, int64_t c0, int64_t c1,
                             int64_t in, int64_t m, int64_t out, float* u) {
  const int64_t point = PointStep(in * out);
  const int64_t width = PanelWidth(m, out);
  const __m512i lanes =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(static_cast<int>(s.out_step)));
  for (int64_t c = c0; c < c1; ++c) {
    const float* from = weight + c * s.in_step + m * s.out_step;
    float* to = u + PanelOffset(m, in) + c * width;
    Apply2d<Evaluate<R>>(
        [&](int i, int j, __m512& w) WINOGRAD_LAMBDA {
          const int tap = i * R + j;
          w = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, lanes,
                                       from + (s.turned ? R * R - 1 - tap : tap), 4);
        },
        [&](int i, int j, const __m512& w) WINOGRAD_LAMBDA {
          _mm512_storeu_ps(to + (i * 6 + j) * point, w * _mm512_set1_ps(kScales[i] * kScales[j]));
        });
  }
}

template <int R>
TRAINER_AVX512 void ToKernels(const float* sums, int64_t parts, int64_t part_step,
                              const KernelSteps& s, int64_t c, int64_t in, int64_t m, int64_t out,
                              float* dweight) {
  alignas(64) float taps[R * R][kLanes];
  const int64_t point = PointStep(in * out);
  const float* from = sums + PanelOffset(m, in) + c * PanelWidth(m, out);
  Apply2d<Interpolate<R>>(
      [&](int i, int j, __m512& sum) WINOGRAD_LAMBDA {
        const float* at = from + (i * 6 + j) * point;
        sum = _mm512_loadu_ps(at);
        for (int64_t part = 1; part < parts; ++part) {
          sum += _mm512_loadu_ps(at + part * part_step);
        }
        sum *= _mm512_set1_ps(kScales[i] * kScales[j]);
      },
      [&](int i, int j, const __m512& w) WINOGRAD_LAMBDA { _mm512_store_ps(taps[i * R + j], w); });
  float* to = dweight + c * s.in_step + m * s.out_step;
  for (int64_t lane = 0; lane < kLanes; ++lane, to += s.out_step) {
    for (int tap = 0; tap < R * R; ++tap) to[tap] += taps[tap][lane];
  }
}

}  // namespace

void InputToPoints(const float* x, const Patches& patches, const TileRange& range, float* v) {
  PatchesToPoints<FromPatch>(x, patches, range, v);
}

void GradientToPoints(const float* dy, const Patches& patches, int64_t tile, const TileRange& range,
                      float* v) {
  if (tile == 4) return PatchesToPoints<Evaluate<4>>(dy, patches, range, v);
  PatchesToPoints<Evaluate<2>>(dy, patches, range, v);
}

void PointsToOutput(const float* v, const TileRange& range, int64_t tile, const float* bias,
                    bool rectify, const Patches& patches, float* y) {
  if (tile == 4) return ToOutput<4>(v, range, bias, rectify, patches, y);
  ToOutput<2>(v, range, bias, rectify, patches, y);
}

void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u) {
  if (steps.kernel == 3) return ToPoints<3>(weight, steps, c0, c1, in, m, out, u);
  ToPoints<5>(weight, steps, c0, c1, in, m, out, u);
}

void PointsToKernels(const float* sums, int64_t parts, int64_t part_step, const KernelSteps& steps,
                     int64_t c, int64_t in, int64_t m, int64_t out, float* dweight) {
  if (steps.kernel == 3) return ToKernels<3>(sums, parts, part_step, steps, c, in, m, out, dweight);
  ToKernels<5>(sums, parts, part_step, steps, c, in, m, out, dweight);
}

}  // namespace trainer::cpu

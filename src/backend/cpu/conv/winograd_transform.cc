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

// Returns a * x + y in `to`. All vectors F are passed by reference (simd.h).
template <class F>
TRAINER_INLINE void MulAdd(F& to, float a, const F& x, const F& y) {
  to = a * x + y;
}

// Computes to = the sum over k < D of factors[k] x[2 k], plus x[2 D], whose factor is 1.
template <int D, class F>
TRAINER_INLINE void Polynomial(F& to, const float* factors, const F* x) {
  to = x[2 * D];
#pragma GCC unroll 4
  for (int k = D - 1; k >= 0; --k) MulAdd(to, factors[k], x[2 * k], to);
}

// Computes out = B^T in, for N inputs of a patch along one axis.
template <int N>
struct FromPatch {
  static constexpr int kIn = N, kOut = N, kPairs = N / 2 - 1;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[N], F (&out)[N]) {
    Polynomial<kPairs>(out[0], kFactors<N>.all, in);
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const float* others = kFactors<N>.others[i];
      F even, odd;
      Polynomial<kPairs - 1>(even, others, in + 2);
      Polynomial<kPairs - 1>(odd, others, in + 1);
      const float p = Points<N>::kPairs[i];
      MulAdd(out[1 + 2 * i], p, odd, even);
      MulAdd(out[2 + 2 * i], -p, odd, even);
    }
    Polynomial<kPairs>(out[N - 1], kFactors<N>.all, in + 1);
  }
};

// Evaluates a polynomial at the N points: out = A in, where `in` has its K coefficients, the lowest
// power first. The even and the odd powers are summed once for each pair p and -p; the value at
// infinity is the highest coefficient.
template <int N, int K>
struct Evaluate {
  static constexpr int kIn = K, kOut = N;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[K], F (&out)[N]) {
    out[0] = in[0];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const float p = Points<N>::kPairs[i];
      F even = in[(K - 1) / 2 * 2], odd = in[K / 2 * 2 - 1];
#pragma GCC unroll 4
      for (int k = (K - 1) / 2 * 2 - 2; k >= 0; k -= 2) MulAdd(even, p * p, even, in[k]);
#pragma GCC unroll 4
      for (int k = K / 2 * 2 - 3; k > 0; k -= 2) MulAdd(odd, p * p, odd, in[k]);
      MulAdd(out[1 + 2 * i], p, odd, even);
      MulAdd(out[2 + 2 * i], -p, odd, even);
    }
    out[N - 1] = in[K - 1];
  }
};

// Computes out = A^T in for K elements: each is a sum of the values at the points times a power of
// the point.
template <int N, int K>
struct Interpolate {
  static constexpr int kIn = N, kOut = K;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[N], F (&out)[K]) {
    out[0] = in[0] + in[1] + in[2];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const F even = in[1 + 2 * i] + in[2 + 2 * i], odd = in[1 + 2 * i] - in[2 + 2 * i];
      if (i > 0) out[0] += even;
      float power = 1;
#pragma GCC unroll 5
      for (int k = 1; k < K; ++k) {
        power *= Points<N>::kPairs[i];
        const F part = k % 2 == 0 ? even : odd;
        if (i == 0) {
          out[k] = power * part;
          V::KeepProduct(out[k]);  // the next pair's product is the fused one
        } else {
          MulAdd(out[k], power, part, out[k]);
        }
      }
    }
    out[K - 1] += in[N - 1];
  }
};

// Applies the transform along both axes. `load(i, j, to)` and `store(i, j, from)` are inlined.
template <class V, class Axis, class LoadAt, class StoreAt>
TRAINER_INLINE void Apply2d(LoadAt load, StoreAt store) {
  using F = typename V::F;
  F half[Axis::kIn][Axis::kOut];
  for (int i = 0; i < Axis::kIn; ++i) {
    F in[Axis::kIn];
#pragma GCC unroll 8
    for (int j = 0; j < Axis::kIn; ++j) load(i, j, in[j]);
    Axis::template Apply<V>(in, half[i]);
  }
  for (int j = 0; j < Axis::kOut; ++j) {
    F in[Axis::kIn], out[Axis::kOut];
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kIn; ++i) in[i] = half[i][j];
    Axis::template Apply<V>(in, out);
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kOut; ++i) store(i, j, out[i]);
  }
}

// Rows or columns of one patch. Positions outside the image have mask 0 and the offset of a
// position inside.
template <class V>
struct Span {
  int64_t offset[8];
  typename V::Mask mask[8];

  TRAINER_INLINE void Set(int64_t begin, int64_t length, int64_t extent, int64_t step) {
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = std::clamp<int64_t>(begin + i, 0, extent - 1);
      offset[i] = at * step;
      V::MaskAll(mask[i], at == begin + i);
    }
  }
};

// Loads a vector, or zeros if the mask selects no lane.
template <class V>
TRAINER_INLINE void LoadOrZero(typename V::F& to, const float* from, const typename V::Mask& mask) {
  V::LoadWhere(to, from, mask);
}
// Positions outside the image have the address of one inside, which may be read.
template <class V>
TRAINER_INLINE void LoadOrZero(typename V::F& to, const BFloat16* from,
                               const typename V::Mask& mask) {
  V::LoadTo(to, from);
  V::Clear(to, mask);
}

// The position of a tile's patch.
struct TileOrigin {
  int64_t image, i, j;  // image; row and column of the first pixel
};
// Returns where the patch of a tile begins; row and column may be negative.
TileOrigin OriginOf(const Patches& p, int64_t tile) {
  const int64_t line = tile / p.across;
  return {line / p.down, line % p.down * p.step - p.ph, tile % p.across * p.step - p.pw};
}

// Transforms the patches of a range of tiles along both axes, one vector of channels at a time, and
// writes them to `v`, stored as at the head of winograd.h.
template <class V, class Axis, class T>
struct PatchesToPoints {
  static TRAINER_INLINE void Run(const T* images, const Patches& p, const TileRange& range,
                                 float* v) {
    using F = typename V::F;
    const int64_t point = PointStep(range.channels * range.count);
    for (int64_t t = 0; t < range.count; ++t) {
      const TileOrigin at = OriginOf(p, range.first + t);
      Span<V> rows, columns;
      rows.Set(at.i, Axis::kIn, p.h, p.w * p.pixel);
      columns.Set(at.j, Axis::kIn, p.w, p.pixel);
      const T* from = images + at.image * p.h * p.w * p.pixel;
      for (int64_t c = 0; c < range.channels; c += V::kLanes) {
        float* to = v + c / kLanes * range.count * kLanes + t * kLanes + c % kLanes;
        Apply2d<V, Axis>(
            [&](int i, int j, F& x) __attribute__((always_inline)) {
              LoadOrZero<V>(x, from + rows.offset[i] + columns.offset[j] + c,
                            rows.mask[i] & columns.mask[j]);
            },
            [&](int i, int j, const F& x) __attribute__((always_inline)) {
              float* const point_row = to + (i * Axis::kOut + j) * point;
              V::StoreTo(point_row, x);
              // For the next channels.
              if (V::kLanes == kLanes) __builtin_prefetch(point_row + range.count * kLanes, 1);
            });
      }
    }
  }
};

// Implements PointsToOutput; skips the outputs of a tile that are outside the image.
template <class V, int N, class T>
struct ToOutput {
  static TRAINER_INLINE void Run(const float* v, const TileRange& range, const float* bias,
                                 bool rectify, const Patches& p, T* y) {
    using F = typename V::F;
    const int64_t point = PointStep(range.channels * range.count);
    for (int64_t t = 0; t < range.count; ++t) {
      const TileOrigin at = OriginOf(p, range.first + t);
      const int64_t rows = p.h - at.i, columns = p.w - at.j;
      T* to = y + ((at.image * p.h + at.i) * p.w + at.j) * p.pixel;
      for (int64_t m = 0; m < range.channels; m += V::kLanes) {
        const float* from = v + m / kLanes * range.count * kLanes + t * kLanes + m % kLanes;
        F start{};
        if (bias != nullptr) V::LoadTo(start, bias + m);
        Apply2d<V, Interpolate<N, kTile>>(
            [&](int i, int j, F& x) __attribute__((always_inline)) {
              V::LoadTo(x, from + (i * N + j) * point);
            },
            [&](int i, int j, const F& x) __attribute__((always_inline)) {
              if (i >= rows || j >= columns) return;
              F sum = x + start;
              if (rectify) sum = sum <= F{} ? F{} : sum;
              V::StoreTo(to + (i * p.w + j) * p.pixel + m, sum);
            });
      }
    }
  }
};

// Returns the offset of output m's column in the data of a point.
int64_t PanelOffset(int64_t m, int64_t in) {
  const int64_t panel = PanelOutputs();
  return m / panel * panel * in + m % panel;
}
// Returns the distance of the rows of that column: the outputs of its panel.
int64_t PanelWidth(int64_t m, int64_t out) {
  const int64_t panel = PanelOutputs();
  return std::min(panel, out - m / panel * panel);
}

// Implements KernelsToPoints for R x R kernels.
template <class V, int N, int R>
struct ToPoints {
  static TRAINER_INLINE void Run(const float* weight, const KernelSteps& s, int64_t c0, int64_t c1,
                                 int64_t m, float* to, int64_t width, int64_t point) {
    using F = typename V::F;
    const float* scales = kFactors<N>.scales;
    for (int64_t c = c0; c < c1; ++c, to += width) {
      for (int64_t lane = 0; lane < kLanes; lane += V::kLanes) {
        const float* from = weight + c * s.in_step + (m + lane) * s.out_step;
        Apply2d<V, Evaluate<N, R>>(
            [&](int i, int j, F& w) __attribute__((always_inline)) {
              const int tap = i * R + j;
              V::Gather(w, from + (s.reversed ? R * R - 1 - tap : tap), s.out_step);
            },
            [&](int i, int j, const F& w) __attribute__((always_inline)) {
              const float scale = scales[i] * scales[j];
              F all;
              V::Broadcast(all, &scale);
              V::StoreTo(to + lane + (i * N + j) * point, w * all);
            });
      }
    }
  }
};

// Implements PointsToKernels for R x R kernels.
template <class V, int N, int R>
struct ToKernels {
  static TRAINER_INLINE void Run(const float* from, int64_t point, int64_t parts, int64_t part_step,
                                 const KernelSteps& s, float* to) {
    using F = typename V::F;
    alignas(64) float taps[R * R][kLanes];
    const float* scales = kFactors<N>.scales;
    for (int64_t first = 0; first < kLanes; first += V::kLanes) {
      Apply2d<V, Interpolate<N, R>>(
          [&](int i, int j, F& sum) __attribute__((always_inline)) {
            const float* at = from + first + (i * N + j) * point;
            V::LoadTo(sum, at);
            for (int64_t part = 1; part < parts; ++part) {
              F other;
              V::LoadTo(other, at + part * part_step);
              sum += other;
            }
            const float scale = scales[i] * scales[j];
            F all;
            V::Broadcast(all, &scale);
            sum *= all;
          },
          [&](int i, int j, const F& w) __attribute__((always_inline)) {
            V::StoreTo(taps[i * R + j] + first, w);
          });
    }
    for (int64_t lane = 0; lane < kLanes; ++lane, to += s.out_step) {
      for (int tap = 0; tap < R * R; ++tap) to[tap] += taps[tap][lane];
    }
  }
};

// Runs PatchesToPoints for the transform `Axis`.
template <class Axis, class T>
void TransformPatches(const T* images, const Patches& patches, const TileRange& range, float* v) {
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    CompiledFor<V, PatchesToPoints<V, Axis, T>, const T*, const Patches&, const TileRange&,
                float*>()(images, patches, range, v);
  });
}

}  // namespace

template <class T>
void InputToPoints(const T* x, const Patches& patches, int64_t kernel, const TileRange& range,
                   float* v) {
  if (kernel == 3) return TransformPatches<FromPatch<6>>(x, patches, range, v);
  TransformPatches<FromPatch<8>>(x, patches, range, v);
}

template <class T>
void GradientToPoints(const T* dy, const Patches& patches, int64_t kernel, const TileRange& range,
                      float* v) {
  if (kernel == 3) return TransformPatches<Evaluate<6, kTile>>(dy, patches, range, v);
  TransformPatches<Evaluate<8, kTile>>(dy, patches, range, v);
}

template <class T>
void PointsToOutput(const float* v, const TileRange& range, int64_t kernel, const float* bias,
                    bool rectify, const Patches& patches, T* y) {
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    const auto run = [&](auto to_output) {
      CompiledFor<V, decltype(to_output), const float*, const TileRange&, const float*, bool,
                  const Patches&, T*>()(v, range, bias, rectify, patches, y);
    };
    kernel == 3 ? run(ToOutput<V, 6, T>{}) : run(ToOutput<V, 8, T>{});
  });
}

void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u) {
  const int64_t width = PanelWidth(m, out);
  float* const to = u + PanelOffset(m, in) + c0 * width;
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    const auto run = [&](auto to_points) {
      CompiledFor<V, decltype(to_points), const float*, const KernelSteps&, int64_t, int64_t,
                  int64_t, float*, int64_t, int64_t>()(weight, steps, c0, c1, m, to, width,
                                                       PointStep(in * out));
    };
    steps.kernel == 3 ? run(ToPoints<V, 6, 3>{}) : run(ToPoints<V, 8, 5>{});
  });
}

void PointsToKernels(const float* sums, int64_t parts, int64_t part_step, const KernelSteps& steps,
                     int64_t c, int64_t in, int64_t m, int64_t out, float* dweight) {
  const float* const from = sums + PanelOffset(m, in) + c * PanelWidth(m, out);
  float* const to = dweight + c * steps.in_step + m * steps.out_step;
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    const auto run = [&](auto to_kernels) {
      CompiledFor<V, decltype(to_kernels), const float*, int64_t, int64_t, int64_t,
                  const KernelSteps&, float*>()(from, PointStep(in * out), parts, part_step, steps,
                                                to);
    };
    steps.kernel == 3 ? run(ToKernels<V, 6, 3>{}) : run(ToKernels<V, 8, 5>{});
  });
}

template void InputToPoints(const float*, const Patches&, int64_t, const TileRange&, float*);
template void InputToPoints(const BFloat16*, const Patches&, int64_t, const TileRange&, float*);
template void GradientToPoints(const float*, const Patches&, int64_t, const TileRange&, float*);
template void GradientToPoints(const BFloat16*, const Patches&, int64_t, const TileRange&, float*);
template void PointsToOutput(const float*, const TileRange&, int64_t, const float*, bool,
                             const Patches&, float*);
template void PointsToOutput(const float*, const TileRange&, int64_t, const float*, bool,
                             const Patches&, BFloat16*);

}  // namespace trainer::cpu

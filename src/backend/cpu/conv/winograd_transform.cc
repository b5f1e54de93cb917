#include <algorithm>

#include "cpu/conv/winograd.h"
#include "cpu/conv/winograd_axis.h"
#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

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

// Loads the lanes that the mask selects, of the first `count` lanes, and sets the others to 0.
template <class V>
TRAINER_INLINE void LoadOrZero(typename V::F& to, const float* from, const typename V::Mask& mask,
                               int64_t) {
  V::LoadWhere(to, from, mask);
}
// Positions outside the image have the address of one inside, which may be read.
template <class V>
TRAINER_INLINE void LoadOrZero(typename V::F& to, const BFloat16* from,
                               const typename V::Mask& mask, int64_t count) {
  if (count >= V::kLanes) {
    V::LoadTo(to, from);
  } else {
    BFloat16 lanes[V::kLanes] = {};
    std::copy_n(from, std::max<int64_t>(count, 0), lanes);
    V::LoadTo(to, lanes);
  }
  V::Clear(to, mask);
}

// The sizes of a WinogradTile, known to the compiler.
template <int R, int K>
struct TileOf {
  static constexpr int kTaps = R, kOutputs = K, kPoints = R + K - 1;
};
// Calls body(TileOf<...>{}) for the sizes that WinogradRefuses accepts.
template <class Body>
void WithTile(const WinogradTile& tile, Body body) {
  if (tile.taps == 3) return body(TileOf<3, 4>{});
  tile.outputs == 2 ? body(TileOf<5, 2>{}) : body(TileOf<5, 4>{});
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
    const int64_t point = range.Step(), all = RoundUpToLanes(range.channels);
    for (int64_t t = 0; t < range.count; ++t) {
      const TileOrigin at = OriginOf(p, range.first + t);
      Span<V> rows, columns;
      rows.Set(at.i, Axis::kIn, p.h, p.w * p.pixel);
      columns.Set(at.j, Axis::kIn, p.w, p.pixel);
      const T* from = images + at.image * p.h * p.w * p.pixel;
      for (int64_t c = 0; c < all; c += V::kLanes) {
        const int64_t count = range.channels - c;
        typename V::Mask channels;
        V::MaskFirst(channels, std::clamp<int64_t>(count, 0, V::kLanes));
        float* to = v + c / kLanes * range.count * kLanes + t * kLanes + c % kLanes;
        Apply2d<V, Axis>(
            [&](int i, int j, F& x) __attribute__((always_inline)) {
              LoadOrZero<V>(x, from + rows.offset[i] + columns.offset[j] + c,
                            rows.mask[i] & columns.mask[j] & channels, count);
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
template <class V, class Tile, class T>
struct ToOutput {
  static constexpr int kOutputs = Tile::kOutputs, N = Tile::kPoints;
  static TRAINER_INLINE void Run(const float* v, const TileRange& range, const float* bias,
                                 bool rectify, const Patches& p, T* y) {
    using F = typename V::F;
    const int64_t point = range.Step();
    for (int64_t t = 0; t < range.count; ++t) {
      const TileOrigin at = OriginOf(p, range.first + t);
      const int64_t rows = std::min<int64_t>(p.h - at.i, kOutputs);
      const int64_t columns = std::min<int64_t>(p.w - at.j, kOutputs);
      T* const tile = y + ((at.image * p.h + at.i) * p.w + at.j) * p.pixel;
      for (int64_t m = 0; m < range.channels; m += V::kLanes) {
        const float* from = v + m / kLanes * range.count * kLanes + t * kLanes + m % kLanes;
        const int64_t count = std::min(range.channels - m, V::kLanes);
        // A vector that is not full goes through an array, from which its first lanes are copied.
        T part[kOutputs * kOutputs * V::kLanes];
        const bool full = count == V::kLanes;
        T* const to = full ? tile + m : part;
        const int64_t row = full ? p.w * p.pixel : kOutputs * V::kLanes;
        const int64_t column = full ? p.pixel : V::kLanes;
        F start{};
        if (bias != nullptr) {
          typename V::Mask channels;
          V::MaskFirst(channels, count);
          V::LoadWhere(start, bias + m, channels);
        }
        Apply2d<V, Interpolate<N, kOutputs>>(
            [&](int i, int j, F& x)
                __attribute__((always_inline)) { V::LoadTo(x, from + (i * N + j) * point); },
            [&](int i, int j, const F& x) __attribute__((always_inline)) {
              if (i >= rows || j >= columns) return;
              F sum = x + start;
              if (rectify) sum = sum <= F{} ? F{} : sum;
              V::StoreTo(to + i * row + j * column, sum);
            });
        for (int64_t i = 0; i < rows && !full; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            std::copy_n(part + i * row + j * column, count, tile + (i * p.w + j) * p.pixel + m);
          }
        }
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
  return std::min(panel, RoundUpToLanes(out) - m / panel * panel);
}

// Implements KernelsToPoints for R x R kernels.
template <class V, class Tile>
struct ToPoints {
  static constexpr int N = Tile::kPoints, R = Tile::kTaps;
  static TRAINER_INLINE void Run(const float* weight, const KernelSteps& s, int64_t c0, int64_t c1,
                                 int64_t m, int64_t count, float* to, int64_t width,
                                 int64_t point) {
    using F = typename V::F;
    const float* scales = kFactors<N>.scales;
    for (int64_t c = c0; c < c1; ++c, to += width) {
      for (int64_t lane = 0; lane < kLanes; lane += V::kLanes) {
        const float* from = weight + c * s.in_step + (m + lane) * s.out_step;
        Apply2d<V, Evaluate<N, R>>(
            [&](int i, int j, F& w) __attribute__((always_inline)) {
              const int tap = i * R + j;
              V::Gather(w, from + (s.reversed ? R * R - 1 - tap : tap), s.out_step,
                        std::clamp<int64_t>(count - lane, 0, V::kLanes));
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
template <class V, class Tile>
struct ToKernels {
  static constexpr int N = Tile::kPoints, R = Tile::kTaps;
  static TRAINER_INLINE void Run(const float* from, int64_t point, int64_t parts, int64_t part_step,
                                 const KernelSteps& s, int64_t count, float* to) {
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
          [&](int i, int j, const F& w)
              __attribute__((always_inline)) { V::StoreTo(taps[i * R + j] + first, w); });
    }
    for (int64_t lane = 0; lane < count; ++lane, to += s.out_step) {
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
void InputToPoints(const T* x, const Patches& patches, const WinogradTile& tile,
                   const TileRange& range, float* v) {
  if (tile.Points() == 6) return TransformPatches<FromPatch<6>>(x, patches, range, v);
  TransformPatches<FromPatch<8>>(x, patches, range, v);
}

template <class T>
void GradientToPoints(const T* dy, const Patches& patches, const WinogradTile& tile,
                      const TileRange& range, float* v) {
  WithTile(tile, [&](auto of) {
    using Tile = decltype(of);
    TransformPatches<Evaluate<Tile::kPoints, Tile::kOutputs>>(dy, patches, range, v);
  });
}

template <class T>
void PointsToOutput(const float* v, const TileRange& range, const WinogradTile& tile,
                    const float* bias, bool rectify, const Patches& patches, T* y) {
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    const auto run = [&](auto to_output) {
      CompiledFor<V, decltype(to_output), const float*, const TileRange&, const float*, bool,
                  const Patches&, T*>()(v, range, bias, rectify, patches, y);
    };
    WithTile(tile, [&](auto of) { run(ToOutput<V, decltype(of), T>{}); });
  });
}

void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u) {
  const int64_t width = PanelWidth(m, out), count = std::min(kLanes, out - m);
  float* const to = u + PanelOffset(m, in) + c0 * width;
  WithWideLanes([&](auto lanes) {
    using V = typename decltype(lanes)::Type;
    const auto run = [&](auto to_points) {
      CompiledFor<V, decltype(to_points), const float*, const KernelSteps&, int64_t, int64_t,
                  int64_t, int64_t, float*, int64_t, int64_t>()(weight, steps, c0, c1, m, count, to,
                                                                width, KernelStep(in, out));
    };
    WithTile(steps.tile, [&](auto of) { run(ToPoints<V, decltype(of)>{}); });
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
                  const KernelSteps&, int64_t, float*>()(
          from, KernelStep(in, out), parts, part_step, steps, std::min(kLanes, out - m), to);
    };
    WithTile(steps.tile, [&](auto of) { run(ToKernels<V, decltype(of)>{}); });
  });
}

template void InputToPoints(const float*, const Patches&, const WinogradTile&, const TileRange&,
                            float*);
template void InputToPoints(const BFloat16*, const Patches&, const WinogradTile&, const TileRange&,
                            float*);
template void GradientToPoints(const float*, const Patches&, const WinogradTile&, const TileRange&,
                               float*);
template void GradientToPoints(const BFloat16*, const Patches&, const WinogradTile&,
                               const TileRange&, float*);
template void PointsToOutput(const float*, const TileRange&, const WinogradTile&, const float*,
                             bool, const Patches&, float*);
template void PointsToOutput(const float*, const TileRange&, const WinogradTile&, const float*,
                             bool, const Patches&, BFloat16*);

}  // namespace trainer::cpu

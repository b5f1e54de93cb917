#pragma once
// LRN across channels on the CPU in one pass per direction. A pixel's channels are contiguous, so
// the sums over neighbours are recomputed in the cache, and no workspace is needed.

#include "lrn_math.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/nontemporal.h"

namespace trainer::cpu {

// Limits of the buffers of a pass.
inline constexpr int64_t kMaxLrnChannels = 1024, kMaxLrnHalf = 16;

// `half`: number of neighbours on each side. slope: 2 * factor * beta.
struct LrnNumbers {
  int64_t half;
  float k, factor, slope;
};
template <class T>
struct LrnOperands {
  const T *x, *dy;  // dy is null for a forward pass
  T* out;           // y or dx
  int64_t pixels, channels;
};

namespace lrn_internal {

// Processes a few pixels at a time in a cached buffer. Each pixel is followed by 2 * half zeros and
// the first is preceded by `half` zeros, so that one loop sums the neighbours of all. kTerms is 2 *
// half + 1, or 0 for any number of terms.
template <class T, class Power, int kTerms>
struct AcrossPixels {
  static constexpr int64_t kSize = kMaxLrnChannels + 2 * kMaxLrnHalf;
  static constexpr int64_t kPadded = kSize + 2 * kMaxLrnHalf;

  LrnOperands<T> in;
  LrnNumbers by;
  Power power;
  bool stream;

  // Returns the floats from one pixel to the next in the buffers.
  int64_t Step() const { return in.channels + 2 * by.half; }
  // Returns the number of pixels that one call processes.
  int64_t Pixels() const { return kSize / Step(); }

  // Processes a group of Pixels() pixels; the last group may have fewer.
  __attribute__((always_inline)) void operator()(int64_t group) const {
    const AcrossPixels own = *this;
    const int64_t first = group * Pixels();
    const int64_t left = in.pixels - first;
    const int64_t pixels = left < Pixels() ? left : Pixels();
    if (in.dy == nullptr) {
      own.Forward(first * in.channels, pixels);
    } else {
      own.Backward(first * in.channels, pixels);
    }
  }

 private:
  // Calls f(i, from[i] + ... + from[i + 2 * half]) for each i of [0, count). `sums` has room for
  // `count` floats.
  template <class F>
  __attribute__((always_inline)) void ForWindows(const float* from, int64_t count, float* sums,
                                                 F f) const {
    if constexpr (kTerms > 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        float sum = from[i];
#pragma GCC unroll 8
        for (int t = 1; t < kTerms; ++t) sum += from[i + t];
        f(i, sum);
      }
    } else {
      for (int64_t i = 0; i < count; ++i) sums[i] = from[i];
      for (int64_t t = 1; t <= 2 * by.half; ++t) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) sums[i] += from[i + t];
      }
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) f(i, sums[i]);
    }
  }

  // Prefetches the pixel that the next call reads instead of this one, because a call reads nothing
  // while it computes.
  __attribute__((always_inline)) void FetchNext(const T* pixel) const {
    const T* const next = pixel + Pixels() * in.channels;
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t c = 0; c < in.channels; c += kLine) __builtin_prefetch(next + c);
  }

  // Sets padded[p * Step() + half + c] to the square of channel c of pixel p, with zeros between
  // the pixels.
  __attribute__((always_inline)) void Squares(const T* x, int64_t pixels, float* padded) const {
    const int64_t channels = in.channels, gap = 2 * by.half;
    for (int64_t i = 0; i < gap; ++i) padded[i] = 0;
    for (int64_t p = 0; p < pixels; ++p) {
      const T* const from = x + p * channels;
      FetchNext(from);
      float* const to = padded + by.half + p * Step();
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) to[c] = Load(from[c]) * Load(from[c]);
      for (int64_t c = channels; c < channels + gap; ++c) to[c] = 0;
    }
  }

  // Calls f(offset of the pixel in memory, offset of the pixel in the buffers, its output) for each
  // pixel.
  template <class F>
  __attribute__((always_inline)) void ForPixels(int64_t at, int64_t pixels, F f) const {
    alignas(64) T block[kMaxLrnChannels];
    for (int64_t p = 0; p < pixels; ++p) {
      T* const out = in.out + at + p * in.channels;
      f(at + p * in.channels, p * Step(), stream ? block : out);
      if (stream) StreamCopy(out, block, static_cast<size_t>(in.channels) * sizeof(T));
    }
  }

  // Writes y of the pixels from offset `at` on.
  __attribute__((always_inline)) void Forward(int64_t at, int64_t pixels) const {
    alignas(64) float padded[kPadded], norms[kSize];
    Squares(in.x + at, pixels, padded);
    const int64_t channels = in.channels;
    ForWindows(
        padded, pixels * Step(), norms, [&](int64_t i, float sum) __attribute__((always_inline)) {
          norms[i] = power.Norm(by.k + by.factor * sum);
        });
    ForPixels(
        at, pixels, [&](int64_t place, int64_t i, T * y) __attribute__((always_inline)) {
          const T* const x = in.x + place;
          const float* const norm = norms + i;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) Store(y[c], Load(x[c]) * norm[c]);
        });
  }

  // Writes dx of the pixels from offset `at` on, by the formula of LrnPrimitive::Backward.
  __attribute__((always_inline)) void Backward(int64_t at, int64_t pixels) const {
    alignas(64) float padded[kPadded], norms[kSize], sums[kSize];
    Squares(in.x + at, pixels, padded);
    const int64_t count = pixels * Step(), channels = in.channels;
    ForWindows(
        padded, count, sums, [&](int64_t i, float sum) __attribute__((always_inline)) {
          power.Both(by.k + by.factor * sum, norms + i, sums + i);
        });
    for (int64_t p = 0; p < pixels; ++p) {  // overwrites the squares but not the zeros
      const T *const x = in.x + at + p * channels, *const dy = in.dy + at + p * channels;
      FetchNext(dy);
      const float* const slope = sums + p * Step();
      float* const share = padded + by.half + p * Step();
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) share[c] = Load(dy[c]) * Load(x[c]) * slope[c];
    }
    ForWindows(
        padded, count,
        sums, [&](int64_t i, float sum) __attribute__((always_inline)) { sums[i] = sum; });
    ForPixels(
        at, pixels, [&](int64_t place, int64_t i, T * dx) __attribute__((always_inline)) {
          const T *const x = in.x + place, *const dy = in.dy + place;
          const float *const norm = norms + i, *const sum = sums + i;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) {
            Store(dx[c], Load(dy[c]) * norm[c] - by.slope * Load(x[c]) * sum[c]);
          }
        });
  }
};

}  // namespace lrn_internal

// Runs one pass over the pixels, whose channels are neighbours in memory: at most kMaxLrnChannels,
// with half <= kMaxLrnHalf.
template <int kTerms, class T, class Power>
void RunLrnAcross(const LrnOperands<T>& in, const LrnNumbers& by, Power power) {
  const int64_t row_bytes = in.channels * static_cast<int64_t>(sizeof(T));
  const bool stream = Streams(in.out, in.pixels * row_bytes, row_bytes);
  const lrn_internal::AcrossPixels<T, Power, kTerms> group = {in, by, power, stream};
  const int64_t groups = (in.pixels + group.Pixels() - 1) / group.Pixels();
  StreamedFor(groups, MinChunk(kMaxLrnChannels), stream, group);
}

}  // namespace trainer::cpu

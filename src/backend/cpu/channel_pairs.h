#pragma once
// The loops of BatchNorm: two sums per channel in one pass over memory, and loops over pixels with
// per-channel values. For images the channels of a pixel are neighbours, so whole pixels are read
// in order and the sums stay in the cache.

#include "batch_norm_math.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/nontemporal.h"

namespace trainer::cpu {

namespace pixel_pairs_internal {

// Adds a pair of terms to two sums.
HD void AddTo(float& a, float& b, const SumPair& p) {
  a += p.a;
  b += p.b;
}

// Computes the sums of one chunk: out[0][c] of a, out[1][c] of b.
template <class F>
struct ChunkPairs {
  F f;
  PixelChunks in;
  float* out;

  // Takes one pixel at a time, so that memory is read in order. Four at a time would load and store
  // a sum once per four pixels, but on AMD's processors that takes three times as long, because
  // they do not prefetch lines that end after a few hundred bytes.
  __attribute__((always_inline)) void operator()(int64_t chunk) const {
    const int64_t channels = in.rows.length, begin = chunk * in.chunk_rows;
    const int64_t end = std::min(begin + in.chunk_rows, in.rows.count);
    const int64_t first = begin * channels;
    const F g = f;
    float *const a = out + chunk * 2 * channels, *const b = a + channels;
    for (int64_t c = 0; c < 2 * channels; ++c) a[c] = 0;
    // Both halves are read at the same time, since a processor prefetches only so far ahead in each
    // place: the sums over one array take 0.9 of the time (Xeon C in docs/benchmarks.md).
    const int64_t half = (end - begin + 1) / 2;
    for (int64_t low = begin; low < begin + half; ++low) {
      for (int64_t r = low; r < end; r += half) {
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) AddTo(a[c], b[c], g(r * channels + c, first + c, c));
      }
    }
  }
};

// Sums one channel of one chunk, in any memory order.
template <class F>
struct ChannelPairs {
  F f;
  PixelChunks in;
  float* out;

  HD void operator()(int64_t task) const {
    const int64_t channels = in.rows.length, inner = in.rows.inner;
    const int64_t chunk = task / channels, c = task % channels, begin = chunk * in.chunk_rows;
    const int64_t wish = begin + in.chunk_rows, end = wish < in.rows.count ? wish : in.rows.count;
    const int64_t first = in.rows.Start(begin) + c * inner;
    SumPair sum;
    for (int64_t r = begin; r < end; ++r) {
      AddTo(sum.a, sum.b, f(in.rows.Start(r) + c * inner, first, c));
    }
    out[chunk * 2 * channels + c] = sum.a;
    out[(chunk * 2 + 1) * channels + c] = sum.b;
  }
};

// Writes f(offset, channel) for all channels of a group of neighbouring pixels. Group number
// `group` of the pixels [begin, end) has as many pixels as fit kBlock numbers, but at least one.
// With `stream`, computes blocks in the L1 cache first and then stores them past the caches.
template <class T, class F>
struct PixelGroup {
  static constexpr int64_t kBlock = 512;

  F f;
  T* to;
  int64_t channels;
  bool stream;
  int64_t begin, end;

  // Returns the number of pixels of a group.
  int64_t Pixels() const { return std::max<int64_t>(1, kBlock / channels); }

  __attribute__((always_inline)) void operator()(int64_t group) const {
    const F g = f;
    const int64_t first = begin + group * Pixels(), last = std::min(first + Pixels(), end);
    if (!stream) {
      for (int64_t at = first * channels; at < last * channels; at += channels) {
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) Store(to[at + c], g(at + c, c));
      }
      return;
    }
    alignas(64) T block[kBlock];
    for (int64_t c0 = 0; c0 < channels; c0 += kBlock) {
      const int64_t count = std::min(kBlock, channels - c0);
      T* out = block;
      for (int64_t at = first * channels + c0; at < last * channels; at += channels, out += count) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) Store(out[i], g(at + i, c0 + i));
      }
      StreamCopy(to + first * channels + c0, block, static_cast<size_t>(out - block) * sizeof(T));
    }
  }
};

// Writes f(offset, channel) for one channel of a pixel.
template <class T, class F>
struct StorePixel {
  F f;
  T* to;
  HD void operator()(int64_t at, int64_t c, int64_t) const { Store(to[at], f(at, c)); }
};

}  // namespace pixel_pairs_internal

// Sets out[chunk][0 or 1][channel] to the sums over the chunk's pixels of the pairs that f returns:
// see Loops::SumPairs in cpu/loops.h.
template <class F>
void SumPairs(const PixelChunks& in, F f, float* out) {
  if (in.rows.inner == 1) {
    return ParallelFor(in.chunks, pixel_pairs_internal::ChunkPairs<F>{f, in, out},
                       MinChunk(in.chunk_rows * in.rows.length));
  }
  ParallelForBase(in.chunks * in.rows.length, pixel_pairs_internal::ChannelPairs<F>{f, in, out});
}

// Sets to[at] = f(at, channel) for every element, past the caches if `fresh` is set and the output
// is large: see Loops::MapPixels in cpu/loops.h.
template <class T, class F>
void MapPixels(const PixelChunks& in, F f, T* to, bool fresh) {
  const int64_t channels = in.rows.length, bytes = channels * static_cast<int64_t>(sizeof(T));
  if (in.rows.inner != 1) {
    using Store = pixel_pairs_internal::StorePixel<T, F>;
    const PixelStep<Store> step = {Store{f, to}, in};
    return ParallelForBase(
        in.rows.count,
        [=](int64_t row) __attribute__((always_inline)) {
          step(CpuRow{row, channels});
        },
        MinChunk(4 * channels));
  }
  const bool stream = fresh && Streams(to, in.rows.count * bytes, bytes);
  using Group = pixel_pairs_internal::PixelGroup<T, F>;
  // Each thread begins with its last pixels, because the pass before this one (SumPairs) ended with
  // them: what f reads there is still in the last-level cache. Within a block the addresses ascend,
  // as processors prefetch best.
  const int64_t block = std::max<int64_t>(1, (int64_t{1} << 16) / bytes);
  StreamedRanges(in.rows.count, MinChunk(channels), stream, [&](int64_t begin, int64_t end) {
    for (int64_t last = end; last > begin; last -= block) {
      const Group group = {f, to, channels, stream, std::max(begin, last - block), last};
      const int64_t pixels = group.Pixels();
      parallel_for_internal::Loop(0, (last - group.begin + pixels - 1) / pixels, group);
    }
  });
}

}  // namespace trainer::cpu

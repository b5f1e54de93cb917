#pragma once
// The CPU version of the loops that device-independent primitives use (lrn_generic.h,
// batch_norm_generic.h).

#include "cpu/channel_pairs.h"

namespace trainer::cpu {

// Functions that LrnInSteps and BatchNormPasses call; cuda::Loops and cuda::PixelLoops have the
// same.
struct Loops {
  // Joins the moments of chunks.
  template <class T>
  using Moments = MomentsOfChunks<T>;

  // Cuts a tensor into chunks.
  static PixelChunks Chunks(const Shape& shape) { return BalancedChunks(shape); }
  // Calls f(TypeTag<T>{}) with the storage type T of `type`.
  template <class F>
  void DispatchDtype(DType type, const F& f) const {
    DispatchCpuDtype(type, f);
  }
  // Calls f(i) for each i of [0, n).
  template <class F>
  void ForEach(int64_t n, F f) const {
    ParallelFor(n, f);
  }
  // Calls f(row) as MapRows does.
  template <class F>
  void ForRows(int64_t rows, int64_t length, F f) const {
    CpuRows(rows, length, f);
  }
  // Sets out[chunk][0 or 1][channel] to the sums of a and b of f(offset in memory, offset of the
  // chunk's first pixel, channel) over the chunk's pixels.
  template <class F>
  void SumPairs(const PixelChunks& in, F f, float* out) const {
    cpu::SumPairs(in, f, out);
  }
  // Calls f.Finish(channel, the sum of f.OfChunk(chunk, channel) over the chunks) for each channel.
  template <class F>
  void JoinChunks(const PixelChunks& in, F f) const {
    ParallelFor(
        in.rows.length, [=](int64_t c) __attribute__((always_inline)) {
          typename F::Part all;
          for (int64_t k = 0; k < in.chunks; ++k) all.Add(f.OfChunk(k, c));
          f.Finish(c, all);
        });
  }
  // Sets to[at] = f(at, channel) for every element. `fresh`: f does not read `to`, so it may be
  // written past the caches.
  template <class T, class F>
  void MapPixels(const PixelChunks& in, F f, T* to, bool fresh) const {
    cpu::MapPixels(in, f, to, fresh);
  }
};

}  // namespace trainer::cpu

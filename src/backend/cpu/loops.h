#pragma once
// The loops that plans for any device are written in (lrn_steps.h, batch_norm_plan.h), on the CPU.

#include "cpu/pixel_pairs.h"

namespace trainer::cpu {

struct Loops {
  // f(TypeTag<T>{}) with the storage type T of `type`.
  template <class F>
  void WithType(DType type, const F& f) const {
    WithCpuType(type, f);
  }
  // f(i) for each i of [0, n).
  template <class F>
  void ForEach(int64_t n, F f) const {
    ParallelFor(n, f);
  }
  // f(row) as of MapRows.
  template <class F>
  void ForRows(int64_t rows, int64_t length, F f) const {
    CpuRows(rows, length, f);
  }
  // out[chunk][0 or 1][channel] = the sums of a and b of f(offset in memory, offset of the chunk's
  // first pixel, channel) over the chunk's pixels.
  template <class F>
  void SumPairs(const PixelChunks& in, F f, float* out) const {
    cpu::SumPairs(in, f, out);
  }
  // to[at] = f(at, channel) for every element. `fresh`: `to` is none of what f reads, so that it
  // may be written past the caches.
  template <class T, class F>
  void MapInPixels(const PixelChunks& in, F f, T* to, bool fresh) const {
    cpu::MapInPixels(in, f, to, fresh);
  }
};

}  // namespace trainer::cpu

#pragma once
// Base class of the fast pools. They loop over the channels of NHWC in vectors and over rows in
// threads, and only overwrite: a backward row gathers from the windows that cover it, in the order
// of the windows, so that no two threads add to one element.

#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "cpu/simd.h"
#include "pool_math.h"
#include "trainer/backend/primitives/pool.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cpu {

// The extent of a window along one axis: it starts at `start`, covers [begin, end) of the image,
// and counts `length` for an average.
struct Reach {
  int64_t start, begin, end, length;
};
// The windows [first, last) that cover one input pixel.
struct Cover {
  int64_t first = 0, last = 0;
};

// The windows along one axis: `reach` by window, `cover` by pixel.
struct Axis {
  Axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) : cover(in) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t start = o * stride - pad, stop = std::min(start + kernel, in + pad);
      reach.push_back({start, std::max<int64_t>(start, 0), std::min(stop, in),
                       std::max<int64_t>(stop - start, 0)});
      for (int64_t i = reach.back().begin; i < reach.back().end; ++i) {
        cover[i] = {cover[i].last == 0 ? o : cover[i].first, o + 1};
      }
    }
  }

  std::vector<Reach> reach;
  std::vector<Cover> cover;
};

// The inputs of one result: for a window its pixels inside the image, for a pixel the windows that
// cover it. `first` is the index of the first input in the other image, and `tap` is the tap that
// connects it to the result. There are rows x columns inputs.
struct Grid {
  int64_t result, first, tap, rows, columns;
  const Reach *h, *w;  // reach of the window, or of the first input window
};

// Calls f(R, C) with types that hold `rows` and `columns` if loops of these lengths are compiled,
// else 0 and 0. They are compiled for the grids inside an image of 2 x 2 and 3 x 3 windows with
// strides 1 and 2; each pair of lengths costs a second of compile time. Short vectors always get 0,
// and so do all vectors if kFixed is false.
template <class V, bool kFixed, class F>
TRAINER_INLINE void WithCounts(int64_t rows, int64_t columns, F f) {
  constexpr std::integral_constant<int64_t, 0> any;
  constexpr std::integral_constant<int64_t, 1> one;
  constexpr std::integral_constant<int64_t, 2> two;
  constexpr std::integral_constant<int64_t, 3> three;
  if constexpr (kFixed && V::kLanes >= 8) {
    if (columns == 3) {
      if (rows == 3) return f(three, three);
      if (rows == 2) return f(two, three);
    } else if (columns == 2) {
      if (rows == 3) return f(three, two);
      if (rows == 2) return f(two, two);
      if (rows == 1) return f(one, two);
    } else if (columns == 1) {
      if (rows == 2) return f(two, one);
      if (rows == 1) return f(one, one);
    }
  }
  f(any, any);
}

// Calls f(row, column) over a grid. kRows and kColumns are its lengths or 0: loops with constant
// lengths are unrolled, and their start addresses are kept in registers.
template <int64_t kRows, int64_t kColumns, class F>
TRAINER_INLINE void ForGrid(const Grid& grid, F f) {
  const int64_t rows = kRows > 0 ? kRows : grid.rows;
  const int64_t columns = kColumns > 0 ? kColumns : grid.columns;
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < columns; ++b) f(a, b);
  }
}

// Tables of the windows, and loops over windows and pixels. See the head of this file.
class FastPool : public PoolPrimitive {
 public:
  explicit FastPool(const PoolDesc& d)
      : desc_(d),
        high_(d.in_h, d.out_h, d.kernel_h, d.stride_h, d.pad_h),
        wide_(d.in_w, d.out_w, d.kernel_w, d.stride_w, d.pad_w) {}

  std::string kernel() const override { return "channel vectors"; }

 protected:
  // Throws kInternal unless the tensors have the planned shapes and type and the workspace is large
  // enough.
  void Expect(const ConstTensor& x, const ConstTensor& y, size_t workspace, size_t needed) const {
    if (x.shape == desc_.InShape() && y.shape == desc_.OutShape() && x.dtype == desc_.dtype &&
        y.dtype == desc_.dtype && workspace >= needed) {
      return;
    }
    throw Error(ErrorCode::kInternal,
                Join("pooling planned for ", desc_.InShape().ToString(), " ", NameOf(desc_.dtype),
                     " -> ", desc_.OutShape().ToString(), " with ", needed, " bytes got ",
                     x.shape.ToString(), " -> ", y.shape.ToString(), " with ", workspace));
  }

  // Calls f(grid, rows, columns) for each window of a row of y, with the types of WithCounts. Pixel
  // (a, b) of a window is a * in_w + b after the first, and its tap a * kernel_w + b after
  // grid.tap.
  template <class V, bool kFixed, class F>
  TRAINER_INLINE void ForWindows(int64_t row, F f) const {
    const Reach& h = high_.reach[row % desc_.out_h];
    for (int64_t ow = 0; ow < desc_.out_w; ++ow) {
      const Reach& w = wide_.reach[ow];
      const Grid grid = {.result = row * desc_.out_w + ow,
                         .first = h.begin * desc_.in_w + w.begin,
                         .tap = (h.begin - h.start) * desc_.kernel_w + w.begin - w.start,
                         .rows = h.end - h.begin,
                         .columns = w.end - w.begin,
                         .h = &h,
                         .w = &w};
      WithCounts<V, kFixed>(
          grid.rows, grid.columns, [&](auto rows, auto columns) __attribute__((always_inline)) {
            f(grid, rows, columns);
          });
    }
  }

  // Calls f in the same way for each pixel of a row of x. Window (a, b) over the pixel is a * out_w
  // + b after the first, and the pixel's tap in it is a * stride_h * kernel_w + b * stride_w before
  // grid.tap.
  template <class V, bool kFixed, class F>
  TRAINER_INLINE void ForPixels(int64_t row, F f) const {
    const int64_t i = row % desc_.in_h;
    const Cover& h = high_.cover[i];
    const Reach* const reach_h = high_.reach.data() + h.first;
    for (int64_t j = 0; j < desc_.in_w; ++j) {
      const Cover& w = wide_.cover[j];
      const Reach* const reach_w = wide_.reach.data() + w.first;
      const Grid grid = {.result = row * desc_.in_w + j,
                         .first = h.first * desc_.out_w + w.first,
                         .tap = (i - reach_h->start) * desc_.kernel_w + j - reach_w->start,
                         .rows = h.last - h.first,
                         .columns = w.last - w.first,
                         .h = reach_h,
                         .w = reach_w};
      WithCounts<V, kFixed>(
          grid.rows, grid.columns, [&](auto rows, auto columns) __attribute__((always_inline)) {
            f(grid, rows, columns);
          });
    }
  }

  // Returns whether to write `to`, of shape `shape`, past the caches: only if whole lines are
  // written, and only if `to` has 64 MiB or more than an eighth of the last-level cache. The memory
  // of a gradient was in use a moment ago, so much of a smaller one is cached, and streaming would
  // have to evict it.
  template <class V, class T>
  bool StreamsTo(const T* to, const Shape& shape) const {
    static const int64_t least =
        std::min<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / 8, int64_t{64} << 20);
    const int64_t size = sizeof(T), bytes = shape.Count() * size;
    return V::template kStreams<T> && desc_.channels % V::kLanes == 0 && bytes >= least &&
           reinterpret_cast<uintptr_t>(to) % 64 == 0 && Streams(to, bytes, desc_.channels * size);
  }
  // Stores a vector, past the caches if `stream` is set.
  template <class V, class T>
  static TRAINER_INLINE void StoreOrStream(bool stream, T* to, const typename V::F& value) {
    if constexpr (V::template kStreams<T>) {
      if (stream) return V::StreamTo(to, value);
    }
    V::StoreTo(to, value);
  }

  PoolDesc desc_;
  Axis high_, wide_;
};

// Makes a max pool. Its workspace has the tap of each output's winner, or kNoWinner, as uint8_t if
// HasByteTaps(desc), else as int32_t.
std::unique_ptr<PoolPrimitive> MakeMaxPool(const PoolDesc& desc);
// Makes an average pool.
std::unique_ptr<PoolPrimitive> MakeAveragePool(const PoolDesc& desc);

}  // namespace trainer::cpu

#pragma once
// The loops that plans for any device are written in (lrn_generic.h; see also pixel_loops.h), on a
// GPU. Neighbouring threads take neighbouring channels, which for images are neighbours in memory.

#include "trainer/backend/loops/reduce.h"

namespace trainer::cuda {

namespace loops_internal {

inline constexpr int kWarp = 32;
inline constexpr int64_t kMaxBlocks = 1 << 16;

inline unsigned Blocks(int64_t tasks) {
  return static_cast<unsigned>(std::min<int64_t>(tasks, kMaxBlocks));
}

// About 256 threads: x over channels, y over up to `rows` pixels.
inline dim3 PixelThreads(int64_t channels, int64_t rows) {
  unsigned x = 1, y = map_internal::kBlock;
  while (x < channels && x < map_internal::kBlock) x *= 2;
  y /= x;
  while (y > 1 && y / 2 >= rows) y /= 2;
  return {x, y};
}

// f(image, h, w, channel): a block takes rows of pixels, so that only those cost divisions.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    ImagesKernel(F f, int64_t rows, int64_t height, int64_t width, int64_t channels) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t n = row / height, h = row % height;
    for (int64_t w = threadIdx.y; w < width; w += blockDim.y) {
      for (int64_t c = threadIdx.x; c < channels; c += blockDim.x) f(n, h, w, c);
    }
  }
}

// A row of which one thread computes all, for rows that lie side by side: see CpuRow.
struct ThreadRow {
  int64_t index, length;

  template <class F>
  HD float Sum(const F& f) const {
    float sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += f(i);
    return sum;
  }
  template <class F>
  HD float Max(const F& f) const {
    float best = -FLT_MAX;
    for (int64_t i = 0; i < length; ++i) best = fmaxf(best, f(i));
    return best;
  }
  template <class F>
  HD void ForEach(const F& f) const {
    for (int64_t i = 0; i < length; ++i) f(i);
  }
  template <class F>
  HD void Once(const F& f) const {
    f();
  }
};

template <class F>
struct RowOfThread {
  F f;
  int64_t length;
  HD void operator()(int64_t row) const { f(ThreadRow{row, length}); }
};

}  // namespace loops_internal

// The device must outlive it.
class Loops {
 public:
  explicit Loops(const Device& device) : device_(&device) {}

  const Device& device() const { return *device_; }

  // f(TypeTag<T>{}) with the storage type T of `type`.
  template <class F>
  void DispatchDtype(DType type, const F& f) const {
    trainer::DispatchDtype(type, f);
  }

  // f(i) for each i of [0, n).
  template <class F>
  void ForEach(int64_t n, F f) const {
    if (n <= 0) return;
    Launch(*device_, map_internal::ForEachKernel<F>, map_internal::Blocks(n), map_internal::kBlock,
           f, n);
  }

  // f(row) as of MapRows: a warp per row.
  template <class F>
  void ForRows(int64_t rows, int64_t length, F f) const {
    if (rows <= 0) return;
    Launch(*device_, map_internal::RowsKernel<F>,
           map_internal::Blocks(rows * loops_internal::kWarp), map_internal::kBlock, f, rows,
           length);
  }

  // The same with a thread per row.
  template <class F>
  void ForRowsOfThreads(int64_t rows, int64_t length, F f) const {
    ForEach(rows, loops_internal::RowOfThread<F>{f, length});
  }

  // f(image, h, w, channel) for each element of images; calls must not depend on each other.
  template <class F>
  void ForImages(int64_t images, int64_t height, int64_t width, int64_t channels, F f) const {
    if (images * height * width * channels == 0) return;
    Launch(*device_, loops_internal::ImagesKernel<F>, loops_internal::Blocks(images * height),
           loops_internal::PixelThreads(channels, width), f, images * height, height, width,
           channels);
  }

 private:
  const Device* device_;
};

}  // namespace trainer::cuda

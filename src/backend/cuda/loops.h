#pragma once
// The GPU version of the loops that device-independent primitives use (lrn_generic.h; see also
// pixel_loops.h). Neighbouring threads take neighbouring channels, which for images are neighbours
// in memory.

#include "trainer/backend/loops/reduce.h"

namespace trainer::cuda {

namespace loops_internal {

inline constexpr int kWarp = 32;
inline constexpr int64_t kMaxBlocks = 1 << 16;

// Returns the number of blocks for that many tasks of a block; with more than kMaxBlocks tasks,
// each block loops over several.
inline unsigned Blocks(int64_t tasks) {
  return static_cast<unsigned>(std::min<int64_t>(tasks, kMaxBlocks));
}

// Makes blocks of about 256 threads: x runs over channels, y over up to `rows` pixels.
inline dim3 PixelThreads(int64_t channels, int64_t rows) {
  unsigned x = 1, y = map_internal::kBlock;
  while (x < channels && x < map_internal::kBlock) x *= 2;
  y /= x;
  while (y > 1 && y / 2 >= rows) y /= 2;
  return {x, y};
}

// Calls f(image, h, w, channel). A block takes whole rows of pixels, so that divisions are needed
// once per row only.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock, 4)
    ImagesKernel(F f, int64_t rows, int64_t height, int32_t width, int32_t channels) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t n = row / height, h = row % height;
    for (auto w = static_cast<int32_t>(threadIdx.y); w < width; w += blockDim.y) {
      for (auto c = static_cast<int32_t>(threadIdx.x); c < channels; c += blockDim.x) f(n, h, w, c);
    }
  }
}

// A row that one thread computes alone, for rows that are neighbours in memory: see CpuRow.
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
  template <class F, class G>
  HD void StoreEach(const F& value, const G& store) const {
    map_internal::StoreAhead(0, 1, length, value, store);
  }
  template <class F>
  HD void Once(const F& f) const {
    f();
  }
};

// Calls f with the row of a thread.
template <class F>
struct RowOfThread {
  F f;
  int64_t length;
  HD void operator()(int64_t row) const { f(ThreadRow{row, length}); }
};

}  // namespace loops_internal

// Loops over elements, rows and images. The device must outlive this object.
class Loops {
 public:
  explicit Loops(const Device& device) : device_(&device) {}

  const Device& device() const { return *device_; }

  // Calls f(TypeTag<T>{}) with the storage type T of `type`.
  template <class F>
  void DispatchDtype(DType type, const F& f) const {
    trainer::DispatchDtype(type, f);
  }

  // Calls f(i) for each i of [0, n).
  template <class F>
  void ForEach(int64_t n, F f) const {
    if (n <= 0) return;
    Launch(*device_, map_internal::ForEachKernel<F>, map_internal::Blocks(n), map_internal::kBlock,
           f, n);
  }

  // Calls f(row) as MapRows does, with a warp per row.
  template <class F>
  void ForRows(int64_t rows, int64_t length, F f) const {
    if (rows <= 0) return;
    Launch(*device_, map_internal::RowsKernel<F>,
           map_internal::Blocks(rows * loops_internal::kWarp), map_internal::kBlock, f, rows,
           length);
  }

  // Calls f(row) with a thread per row.
  template <class F>
  void ForRowsOfThreads(int64_t rows, int64_t length, F f) const {
    ForEach(rows, loops_internal::RowOfThread<F>{f, length});
  }

  // Calls f(image, h, w, channel) for each element of images, whose width and channels must be
  // below 2^30. The calls must not depend on each other.
  template <class F>
  void ForImages(int64_t images, int64_t height, int64_t width, int64_t channels, F f) const {
    if (images * height * width * channels == 0) return;
    Launch(*device_, loops_internal::ImagesKernel<F>, loops_internal::Blocks(images * height),
           loops_internal::PixelThreads(channels, width), f, images * height, height,
           static_cast<int32_t>(width), static_cast<int32_t>(channels));
  }

 private:
  const Device* device_;
};

}  // namespace trainer::cuda

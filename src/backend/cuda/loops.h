#pragma once
// The loops that plans for any device are written in (lrn_steps.h, batch_norm_plan.h), on a GPU.
// Neighbouring threads take neighbouring channels, which for images are neighbours in memory.

#include "batch_norm_math.h"
#include "trainer/backend/reduce.h"

namespace trainer::cuda {

namespace loops_internal {

inline constexpr int kWarp = 32;
inline constexpr int64_t kMostBlocks = 1 << 16;

inline unsigned Blocks(int64_t tasks) {
  return static_cast<unsigned>(std::min<int64_t>(tasks, kMostBlocks));
}

// About 256 threads: x over channels, y over up to `rows` pixels.
inline dim3 PixelThreads(int64_t channels, int64_t rows) {
  unsigned x = 1, y = map_internal::kBlock;
  while (x < channels && x < map_internal::kBlock) x *= 2;
  y /= x;
  while (y > 1 && y / 2 >= rows) y /= 2;
  return {x, y};
}

// A block of kWarp x kWarp threads sums kWarp neighbouring channels of a chunk, kWarp pixels at a
// time; then one of its warps joins the sums of a, one those of b.
template <class F>
__global__ void __launch_bounds__(kWarp* kWarp) PixelPairsKernel(F f, PixelChunks in, float* out) {
  __shared__ float parts[2][kWarp][kWarp];
  const int64_t channels = in.rows.length, groups = (channels + kWarp - 1) / kWarp;
  for (int64_t tile = blockIdx.x; tile < in.chunks * groups; tile += gridDim.x) {
    const int64_t chunk = tile / groups, c = tile % groups * kWarp + threadIdx.x;
    const int64_t begin = chunk * in.chunk_rows, wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    Pair sum;
    if (c < channels) {
      const int64_t first = begin * channels + c;
#pragma unroll 4
      for (int64_t r = begin + threadIdx.y; r < end; r += kWarp) {
        const Pair p = f(r * channels + c, first, c);
        sum.a += p.a;
        sum.b += p.b;
      }
    }
    parts[0][threadIdx.y][threadIdx.x] = sum.a;
    parts[1][threadIdx.y][threadIdx.x] = sum.b;
    __syncthreads();
    if (threadIdx.y < 2 && c < channels) {
      float all = 0;
#pragma unroll
      for (int y = 0; y < kWarp; ++y) all += parts[threadIdx.y][y][threadIdx.x];
      out[(chunk * 2 + threadIdx.y) * channels + c] = all;
    }
    __syncthreads();
  }
}

// Where the pixels of a channel are neighbours: a block per channel of a chunk.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    ChannelPairsKernel(F f, PixelChunks in, float* out) {
  const int64_t channels = in.rows.length, inner = in.rows.inner;
  for (int64_t task = blockIdx.x; task < in.chunks * channels; task += gridDim.x) {
    const int64_t chunk = task / channels, c = task % channels;
    const int64_t begin = chunk * in.chunk_rows, wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    const int64_t first = in.rows.Start(begin) + c * inner;
    Pair sum;
    for (int64_t r = begin + threadIdx.x; r < end; r += blockDim.x) {
      const Pair p = f(in.rows.Start(r) + c * inner, first, c);
      sum.a += p.a;
      sum.b += p.b;
    }
    const float a = reduce_internal::SumOfBlock(sum.a);
    __syncthreads();
    const float b = reduce_internal::SumOfBlock(sum.b);
    __syncthreads();
    if (threadIdx.x == 0) {
      out[chunk * 2 * channels + c] = a;
      out[(chunk * 2 + 1) * channels + c] = b;
    }
  }
}

// A thread computes a few pixels before it writes any, so that their reads are on the way together:
// `to` may be what f reads, so the compiler could not.
template <class T, class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    MapPixelsKernel(F f, int64_t pixels, int64_t channels, T* to) {
  constexpr int kAhead = map_internal::kAhead;
  const int64_t step = int64_t{gridDim.x} * blockDim.y;
  int64_t r = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; r < pixels; r += kAhead * step) {
    for (int64_t c = threadIdx.x; c < channels; c += blockDim.x) {
      float values[kAhead] = {};
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = r + k * step;
        if (row < pixels) values[k] = f(row * channels + c, c);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = r + k * step;
        if (row < pixels) Store(to[row * channels + c], values[k]);
      }
    }
  }
}

template <class T, class F>
struct MapFlat {
  F f;
  T* to;
  int64_t channels, inner;
  HD void operator()(int64_t at) const { Store(to[at], f(at, at / inner % channels)); }
};

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
  void WithType(DType type, const F& f) const {
    trainer::WithType(type, f);
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

  // out[chunk][0 or 1][channel] = the sums of a and b of f(place in memory, place of the chunk's
  // first pixel, channel) over the chunk's pixels.
  template <class F>
  void SumPairs(const PixelChunks& in, F f, float* out) const {
    const int64_t channels = in.rows.length;
    if (in.rows.inner == 1) {
      constexpr int kWarp = loops_internal::kWarp;
      const int64_t tiles = in.chunks * ((channels + kWarp - 1) / kWarp);
      if (tiles > 0) {
        Launch(*device_, loops_internal::PixelPairsKernel<F>, loops_internal::Blocks(tiles),
               dim3(kWarp, kWarp), f, in, out);
      }
      return;
    }
    if (in.chunks * channels == 0) return;
    Launch(*device_, loops_internal::ChannelPairsKernel<F>,
           loops_internal::Blocks(in.chunks * channels), map_internal::kBlock, f, in, out);
  }

  // to[at] = f(at, channel) for every element; f may read its own element of `to`.
  template <class T, class F>
  void MapInPixels(const PixelChunks& in, F f, T* to, bool) const {
    const int64_t pixels = in.rows.count, channels = in.rows.length;
    if (pixels * channels == 0) return;
    if (in.rows.inner != 1) {
      return ForEach(pixels * channels,
                     loops_internal::MapFlat<T, F>{f, to, channels, in.rows.inner});
    }
    constexpr int kAhead = map_internal::kAhead;
    const dim3 threads = loops_internal::PixelThreads(channels, pixels);
    Launch(*device_, loops_internal::MapPixelsKernel<T, F>,
           loops_internal::Blocks((pixels + kAhead * threads.y - 1) / (kAhead * threads.y)),
           threads, f, pixels, channels, to);
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

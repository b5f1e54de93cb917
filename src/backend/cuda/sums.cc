#include "cuda/loops.h"
#include "cuda/primitives.h"

namespace trainer::cuda {
namespace {

// x, or x * times.
template <class T>
struct Product {
  const T *x, *times;
  HD float operator()(int64_t at) const {
    return times == nullptr ? Load(x[at]) : Load(x[at]) * Load(times[at]);
  }
};

// dy where y > 0, else 0, which is also written to g.
template <class T>
struct MaskedThrough {
  const T *dy, *y;
  T* g;
  HD float operator()(int64_t at) const {
    const float value = Load(y[at]) > 0 ? Load(dy[at]) : 0.0f;
    Store(g[at], value);
    return value;
  }
};

constexpr int kTileChannels = 32, kTileRows = 16;

// Channels that are neighbours, seen as (rows, columns): a block sums f(place) over kTileChannels
// columns of a chunk of rows.
template <class F>
__global__ void __launch_bounds__(kTileChannels* kTileRows)
    ColumnsKernel(F f, int64_t rows, int64_t columns, int64_t chunk, float* out, bool add) {
  __shared__ float parts[kTileRows][kTileChannels];
  const int64_t c = int64_t{blockIdx.x} * kTileChannels + threadIdx.x;
  const int64_t begin = blockIdx.y * chunk, end = begin + chunk < rows ? begin + chunk : rows;
  float sum = 0;
  if (c < columns) {
#pragma unroll 4
    for (int64_t r = begin + threadIdx.y; r < end; r += kTileRows) sum += f(r * columns + c);
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= columns) return;
  for (int y = 1; y < kTileRows; ++y) sum += parts[y][threadIdx.x];
  float* const to = out + blockIdx.y * columns + c;
  *to = add ? *to + sum : sum;
}

// to[c] += the sum of column c over the chunks.
struct AddChunks {
  const float* sums;
  int64_t chunks, columns;
  float* to;
  HD void operator()(int64_t c) const {
    float sum = 0;
    for (int64_t k = 0; k < chunks; ++k) sum += sums[k * columns + c];
    to[c] += sum;
  }
};

template <class F>
void AddColumns(const Loops& loops, int64_t rows, int64_t columns, const F& f, float* to) {
  const int64_t tiles = (columns + kTileChannels - 1) / kTileChannels;
  // Enough blocks for any GPU, as far as their sums have room.
  const int64_t wish = std::min((rows + 63) / 64, (1024 + tiles - 1) / tiles);
  const int64_t chunks = std::max<int64_t>(1, std::min(wish, Device::kPartials / columns));
  const int64_t chunk = (rows + chunks - 1) / chunks, used = (rows + chunk - 1) / chunk;
  float* const partials = loops.device().Partials();
  const dim3 blocks(static_cast<unsigned>(tiles), static_cast<unsigned>(used));
  Launch(loops.device(), ColumnsKernel<F>, blocks, dim3(kTileChannels, kTileRows), f, rows, columns,
         chunk, used == 1 ? to : partials, used == 1);
  if (used > 1) loops.ForEach(columns, AddChunks{partials, used, columns, to});
}

// Channels whose elements are neighbours: a block per channel.
template <class T>
__global__ void __launch_bounds__(map_internal::kBlock)
    ChannelKernel(Product<T> f, ChannelSumsDesc desc, float* to) {
  const int64_t count = desc.outer * desc.inner;
  for (int64_t c = blockIdx.x; c < desc.channels; c += gridDim.x) {
    float sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      sum += f((i / desc.inner * desc.channels + c) * desc.inner + i % desc.inner);
    }
    sum = reduce_internal::SumOfBlock(sum);
    if (threadIdx.x == 0) to[c] += sum;
    __syncthreads();
  }
}

}  // namespace

void AddChannelSums(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& x,
                    const ConstTensor* times, float* to) {
  if (desc.outer * desc.channels * desc.inner == 0) return;
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Product<T> f = {x.As<T>(), times == nullptr ? nullptr : times->As<T>()};
    if (desc.inner == 1) {
      return AddColumns(Loops(device), desc.outer, desc.channels, f, to);
    }
    Launch(device, ChannelKernel<T>, loops_internal::Blocks(desc.channels), map_internal::kBlock, f,
           desc, to);
  });
}

void MaskAndAddChannelSums(const Device& device, const ChannelSumsDesc& desc, const ConstTensor& dy,
                           const ConstTensor& y, const Tensor& g, float* to) {
  if (desc.outer * desc.channels == 0) return;
  WithType(g.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    AddColumns(Loops(device), desc.outer, desc.channels,
               MaskedThrough<T>{dy.As<T>(), y.As<T>(), g.As<T>()}, to);
  });
}

}  // namespace trainer::cuda

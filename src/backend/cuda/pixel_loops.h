#pragma once
// Loops over the pixels of a tensor with functors that can read several channels together, such as
// the functors of batch_norm_math.h. The loops are memory-bound, so a thread takes kTogether
// neighbouring channels and reads a few pixels before it computes.

#include "batch_norm_math.h"
#include "cuda/loops.h"
#include "trainer/backend/loops/pixel_sums.h"

namespace trainer::cuda {

namespace loops_internal {

// Returns the threads of a block: x runs over groups of channels, up to `most`, and y over pixels.
inline dim3 GroupThreads(int64_t groups, unsigned most) {
  const unsigned x = pixel_sums_internal::PowerOfTwo(groups, most);
  return {x, map_internal::kBlock / x};
}

using grouped_sums_internal::AddTo;
using grouped_sums_internal::kSumsIn;
using grouped_sums_internal::SumIn;

// Returns `row`, or the last row instead of a row past the end; values read from it are dropped. If
// the read itself depended on a condition, each pixel read ahead would need its own copy of the
// per-channel values.
HD int64_t RowWithin(int64_t row, int64_t end) { return row < end ? row : end - 1; }

// A block sums up to kWarp groups of V channels of a chunk, blockDim.y pixels at a time, and then
// adds the sums of its threads in a fixed order. With `add`, the sums are added to `out`; this
// needs a single chunk.
template <int V, class F>
__global__ void __launch_bounds__(map_internal::kBlock, 2)
    SumChunksKernel(F f, PixelChunks in, float* out, bool add) {
  using Sum = decltype(f(0, 0, 0));
  constexpr int kSums = kSumsIn<Sum>, kAhead = map_internal::kAhead;
  // Each thread adds up at most one sum of one channel.
  static_assert(kSums <= 2 && kSums * kWarp * V <= map_internal::kBlock);
  __shared__ float parts[kSums][map_internal::kBlock * V];
  const int64_t channels = in.rows.length;
  const unsigned columns = blockDim.x * V, thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int64_t groups = (channels + columns - 1) / columns;
  for (int64_t tile = blockIdx.x; tile < in.chunks * groups; tile += gridDim.x) {
    const int64_t chunk = tile / groups, left = tile % groups * columns;
    const int64_t begin = chunk * in.chunk_rows, wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    const int64_t c = left + threadIdx.x * V, first = begin * channels + c;
    Sum sums[V] = {};
    for (int64_t r = begin + threadIdx.y; c < channels && r < end; r += kAhead * blockDim.y) {
      ReadBy<F, V> ahead[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = RowWithin(r + k * blockDim.y, end);
        ahead[k] = f.template Read<V>({row * channels + c, first, c});
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (r + k * blockDim.y >= end) continue;
        WriteWhereThatIsDue(ahead[k]);
#pragma unroll
        for (int v = 0; v < V; ++v) AddTo(sums[v], ahead[k](v, v, v));
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) parts[s][thread * V + v] = SumIn(sums[v], s);
    }
    __syncthreads();
    const unsigned s = thread < columns ? 0 : 1, column = thread - s * columns;
    if (thread < kSums * columns && left + column < channels) {
      float all = 0;
      for (unsigned y = 0; y < blockDim.y; ++y) all += parts[s][y * columns + column];
      float* const to = out + (chunk * kSums + s) * channels + left + column;
      *to = add ? *to + all : all;
    }
    __syncthreads();
  }
}

// The terms of SumPairs for tensors where the pixels of a channel are neighbours in memory.
template <class F>
struct PairTerms {
  F f;
  Rows rows;
  HD auto OfChunk(int64_t channel, int64_t begin) const {
    const int64_t first = rows.Start(begin) + channel * rows.inner;
    return [this, first](const auto& place) { return f(place.At(), first, place.channel); };
  }
};

inline constexpr int kJoinChannels = 8, kJoinLanes = 64;

// Stores a part, which must consist of doubles, in shared memory, as words, since such variables
// have no constructors.
template <class Part, int kWords>
__device__ void PutPart(const Part& part, double (&words)[kWords][kJoinLanes][kJoinChannels],
                        int lane) {
  static_assert(sizeof(Part) == kWords * sizeof(double));
  double all[kWords];
  memcpy(all, &part, sizeof(part));
  for (int w = 0; w < kWords; ++w) words[w][lane][threadIdx.x] = all[w];
}
template <class Part, int kWords>
__device__ Part GetPart(const double (&words)[kWords][kJoinLanes][kJoinChannels], int lane) {
  double all[kWords];
  for (int w = 0; w < kWords; ++w) all[w] = words[w][lane][threadIdx.x];
  Part part;
  memcpy(&part, all, sizeof(part));
  return part;
}

// A block joins the chunks of kJoinChannels channels: each thread joins every kJoinLanes-th chunk
// of a channel, and reads kAhead chunks before it joins the first. Then the block joins the parts
// of its threads in a fixed order.
template <class F>
__global__ void __launch_bounds__(kJoinChannels* kJoinLanes)
    JoinChunksKernel(F f, int64_t channels, int64_t chunks) {
  using Part = typename F::Part;
  constexpr int kAhead = map_internal::kAhead;
  __shared__ double words[sizeof(Part) / sizeof(double)][kJoinLanes][kJoinChannels];
  const int lane = static_cast<int>(threadIdx.y);
  const int64_t groups = (channels + kJoinChannels - 1) / kJoinChannels;
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const int64_t c = group * kJoinChannels + threadIdx.x;
    Part all;
    for (int64_t k = lane; c < channels && k < chunks; k += kAhead * kJoinLanes) {
      Part ahead[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        // Past the last chunk, one is read again and dropped: if reads depended on a condition, a
        // thread would wait for each before the next.
        const int64_t chunk = k + a * kJoinLanes;
        ahead[a] = f.OfChunk(chunk < chunks ? chunk : k, c);
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (k + a * kJoinLanes < chunks) all.Add(ahead[a]);
      }
    }
    PutPart(all, words, lane);
    for (int half = kJoinLanes / 2; half > 0; half /= 2) {
      __syncthreads();
      if (lane >= half) continue;
      all.Add(GetPart<Part>(words, lane + half));
      PutPart(all, words, lane);
    }
    if (lane == 0 && c < channels) f.Finish(c, all);
    __syncthreads();
  }
}

// Sets to[at] = f(at, channel) for channels that are neighbours in memory, V channels of kAhead
// pixels at a time per thread. `to` may be an array that f reads.
template <int V, class T, class F>
__global__ void __launch_bounds__(map_internal::kBlock, 2)
    MapPixelsKernel(F f, int64_t pixels, int64_t channels, T* to) {
  constexpr int kAhead = map_internal::kAhead;
  const int64_t step = int64_t{gridDim.x} * blockDim.y;
  int64_t r = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  for (; r < pixels; r += kAhead * step) {
    for (int64_t c = int64_t{threadIdx.x} * V; c < channels; c += int64_t{blockDim.x} * V) {
      ReadBy<F, V> ahead[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = RowWithin(r + k * step, pixels);
        ahead[k] = f.template Read<V>({row * channels + c, 0, c});
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = r + k * step;
        Neighbours<T, V> result;
#pragma unroll
        for (int v = 0; v < V; ++v) Store(result.values[v], ahead[k](v, v));
        if (row < pixels) WriteTogether(result, to, row * channels + c);
      }
    }
  }
}

// Lets the kernels of pixel_sums.h call a functor that needs no chunk.
template <class F>
struct WithoutChunk {
  F f;
  HD float operator()(int64_t at, int64_t c, int64_t) const { return f(at, c); }
};

}  // namespace loops_internal

// The loops over pixels for BatchNormPasses and for sums per channel. The device must outlive this
// object.
class PixelLoops : public Loops {
 public:
  using Loops::Loops;

  // Joins the moments of chunks.
  template <class T>
  using Moments = MomentsFromOrigin<T>;

  // Cuts a tensor into chunks.
  static PixelChunks Chunks(const Shape& shape) { return GpuChunks(shape); }

  // Sets out[chunk][0 or 1][channel] to the sums of a and b of f(offset in memory, offset of the
  // chunk's first pixel, channel) over the chunk's pixels.
  template <class F>
  void SumPairs(const PixelChunks& in, F f, float* out) const {
    const int64_t channels = in.rows.length;
    if (in.chunks * channels == 0) return;
    if (in.rows.inner == 1) return SumNeighbours(in, f, out, false);
    grouped_sums_internal::LaunchLongSums(
        device(), loops_internal::PairTerms<F>{f, in.rows},
        {channels, in.rows.count, in.rows.inner, in.chunks, in.chunk_rows}, {out, {}});
  }

  // If f returns a float, sets out[chunk][channel] to its sum over the chunk's pixels; if f returns
  // a SumPair, does the same as SumPairs. Needs channels that are neighbours in memory. With `add`,
  // adds to `out`; this needs a single chunk.
  template <class F>
  void SumNeighbours(const PixelChunks& in, F f, float* out, bool add) const {
    const int64_t channels = in.rows.length;
    WithTogether(f, in.rows, nullptr, [&](auto together) {
      constexpr int kV = decltype(together)::value;
      const dim3 threads =
          loops_internal::GroupThreads((channels + kV - 1) / kV, loops_internal::kWarp);
      const int64_t columns = int64_t{threads.x} * kV;
      Launch(device(), loops_internal::SumChunksKernel<kV, F>,
             loops_internal::Blocks(in.chunks * ((channels + columns - 1) / columns)), threads, f,
             in, out, add);
    });
  }

  // Calls f.Finish(channel, the sum of f.OfChunk(chunk, channel) over the chunks) for each channel.
  template <class F>
  void JoinChunks(const PixelChunks& in, F f) const {
    if (in.rows.length == 0) return;
    constexpr int kChannels = loops_internal::kJoinChannels;
    Launch(device(), loops_internal::JoinChunksKernel<F>,
           loops_internal::Blocks((in.rows.length + kChannels - 1) / kChannels),
           dim3(kChannels, loops_internal::kJoinLanes), f, in.rows.length, in.chunks);
  }

  // Sets to[at] = f(at, channel) for every element, whatever the chunks of `in` are; f may read its
  // own element of `to`.
  template <class T, class F>
  void MapPixels(const PixelChunks& in, F f, T* to, bool) const {
    const int64_t pixels = in.rows.count, channels = in.rows.length;
    if (pixels * channels == 0) return;
    if (in.rows.inner != 1) {
      return pixel_sums_internal::MapOnGpu(device(), {in.rows, 1, pixels},
                                           loops_internal::WithoutChunk<F>{f}, to);
    }
    WithTogether(f, in.rows, to, [&](auto together) {
      constexpr int kV = decltype(together)::value;
      const dim3 threads =
          loops_internal::GroupThreads((channels + kV - 1) / kV, map_internal::kBlock);
      const int64_t rows = int64_t{map_internal::kAhead} * threads.y;
      Launch(device(), loops_internal::MapPixelsKernel<kV, T, F>,
             loops_internal::Blocks((pixels + rows - 1) / rows), threads, f, pixels, channels, to);
    });
  }
};

}  // namespace trainer::cuda

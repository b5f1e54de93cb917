#pragma once
// Sums over pixels for each channel, and loops over pixels with per-channel values, written once
// for both devices.

#include "trainer/backend/loops/grouped_sums.h"
#include "trainer/backend/loops/pixel_chunks.h"
#include "trainer/backend/loops/vector_access.h"

namespace trainer {

namespace pixel_sums_internal {

// Returns the functor that computes the terms of one pixel (a row of PixelChunks): f.OfPixel(pixel)
// if F has that function, which may read in advance what the channels share, or else f.
template <class F>
HD decltype(auto) TermsOfPixel(const F& f, int64_t pixel) {
  if constexpr (requires { f.OfPixel(pixel); }) {
    return f.OfPixel(pixel);
  } else {
    return (f);
  }
}

inline constexpr int kLanes = 16;

// Sums up to kLanes neighbouring channels of a chunk on the CPU. `groups` is the number of such
// groups of channels; task t is group t % groups of chunk t / groups.
template <class F>
struct ChunkSums {
  F f;
  PixelChunks in;
  float* out;
  int64_t groups;

  HD void operator()(int64_t task) const {
    const int64_t chunk = task / groups, first = task % groups * kLanes;
    const int64_t channels = in.rows.length;
    const int64_t begin = chunk * in.chunk_rows;
    const int64_t wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    const int lanes = channels - first < kLanes ? static_cast<int>(channels - first) : kLanes;
    float sum[kLanes] = {};
    if (in.rows.inner == 1 && lanes == kLanes) {
      for (int64_t r = begin; r < end; ++r) {
        const auto& terms = TermsOfPixel(f, r);
        for (int l = 0; l < kLanes; ++l) {
          sum[l] += terms(r * channels + first + l, first + l, chunk * channels + first + l);
        }
      }
    } else {
      for (int l = 0; l < lanes; ++l) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = in.rows.Start(r) + (first + l) * in.rows.inner;
          sum[l] += TermsOfPixel(f, r)(at, first + l, chunk * channels + first + l);
        }
      }
    }
    for (int l = 0; l < lanes; ++l) out[chunk * channels + first + l] = sum[l];
  }
};

// Stores the result of f, a functor for MapPixels.
template <class T, class F>
struct StoreEach {
  F f;
  T* to;
  HD void operator()(int64_t at, int64_t c, int64_t stat) const { Store(to[at], f(at, c, stat)); }
};

#ifdef TRAINER_DEVICE_CODE
// How threads advance through the pixels of a part: by so many pixels that the offset in memory
// grows by `offset`, or by `wrap` more where this passes the last of the `inner` neighbouring
// pixels of a channel.
struct Steps {
  int64_t part_rows, offset, inner, wrap;
};

// The offset in memory of a thread's channel of a pixel, and the pixel's row.
struct PixelAt {
  int64_t offset, row;
};

// Computes f for V neighbouring channels of a pixel, from channel c on. V above 1 needs channels
// that are neighbours in memory.
template <int V, class F>
HD void Evaluate(const F& f, const PixelAt& at, int64_t c, int64_t stat, float (&values)[V]) {
  if constexpr (V == 1) {
    values[0] = TermsOfPixel(f, at.row)(at.offset, c, stat);
  } else {
    const auto read = f.template Read<V>({.at = at.offset, .c = c, .stat = stat});
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] = read(v, v, v);
  }
}

// The first of a thread's V channels, and the thread's pixels of a part, rows `row`, `row` + step,
// ... below `end`. blockIdx counts groups of channels, parts and chunks, so a thread divides at
// most once, to find its first pixel. The threads of a warp process neighbours in memory: those
// along threadIdx.x take other channels, or pixels where the pixels of a channel are adjacent.
template <int V>
struct Walk {
  int64_t c = 0, row = 0, end = 0, offset = 0, at_inner = 0;
  unsigned pixel, step;  // the number of this pixel among those of the block, and their count

  __device__ explicit Walk(const Rows& rows) {
    const bool neighbours = V > 1 || rows.inner == 1;
    pixel = neighbours ? threadIdx.y : threadIdx.x;
    step = neighbours ? blockDim.y : blockDim.x;
    c = V * (neighbours ? int64_t{blockIdx.x} * blockDim.x + threadIdx.x
                        : int64_t{blockIdx.x} * blockDim.y + threadIdx.y);
  }
  __device__ void Start(const PixelChunks& in, const Steps& steps, int64_t chunk) {
    const int64_t first = chunk * in.chunk_rows, begin = first + blockIdx.y * steps.part_rows;
    end = first + in.chunk_rows < in.rows.count ? first + in.chunk_rows : in.rows.count;
    if (begin + steps.part_rows < end) end = begin + steps.part_rows;
    row = begin + pixel;
    offset = row * in.rows.length + c;
    if (V > 1 || in.rows.inner == 1) return;
    at_inner = row % in.rows.inner;
    offset = (row - at_inner) * in.rows.length + c * in.rows.inner + at_inner;
  }
  // Computes the offsets and rows of the next kAhead pixels. Past the end, the last pixel repeats:
  // it is read again and its value is dropped. If reads depended on a condition, or were between
  // the branches here, a thread would wait for each before the next.
  __device__ void Next(const Rows& rows, const Steps& steps, PixelAt (&at)[map_internal::kAhead]) {
#pragma unroll
    for (int k = 0; k < map_internal::kAhead; ++k) {
      at[k] = {offset, row};
      if (row + step >= end) continue;
      row += step;
      offset += steps.offset;
      at_inner += steps.inner;
      if (V > 1 || at_inner < rows.inner) continue;
      at_inner -= rows.inner;
      offset += steps.wrap;
    }
  }
};

// The blocks that a multiprocessor must hold at least; 0: nvcc chooses. For V channels a thread, it
// would choose so many that their registers do not suffice to read kAhead pixels at once.
template <int V>
inline constexpr int kLeastBlocks = V > 1 ? 2 : 0;

// Sums some channels of a part at a time. A thread reads kAhead pixels before it adds the first
// one; then the block adds the sums of its threads in a fixed order.
template <int V, class F>
__global__ void __launch_bounds__(map_internal::kBlock, kLeastBlocks<V>)
    PartSumsKernel(F f, PixelChunks in, Steps steps, float* out) {
  constexpr int kAhead = map_internal::kAhead;
  __shared__ Neighbours<float, V> sums[map_internal::kBlock];
  Walk<V> walk(in.rows);
  const int64_t channels = in.rows.length;
  const unsigned columns = map_internal::kBlock / walk.step;
  const unsigned mine =
      walk.pixel * columns + (V > 1 || in.rows.inner == 1 ? threadIdx.x : threadIdx.y);
  for (int64_t chunk = blockIdx.z; chunk < in.chunks; chunk += gridDim.z) {
    const int64_t stat = chunk * channels + walk.c;
    Neighbours<float, V> sum = {};
    walk.Start(in, steps, chunk);
    const int64_t pass = kAhead * int64_t{walk.step};
    for (int64_t r = walk.row; walk.c < channels && r < walk.end; r += pass) {
      PixelAt at[kAhead];
      walk.Next(in.rows, steps, at);
      float ahead[kAhead][V];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) Evaluate(f, at[k], walk.c, stat, ahead[k]);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const bool is_inside = r + k * int64_t{walk.step} < walk.end;
#pragma unroll
        for (int v = 0; v < V; ++v) sum.values[v] += is_inside ? ahead[k][v] : 0;
      }
    }
    sums[mine] = sum;
    for (unsigned half = walk.step / 2; half > 0; half /= 2) {
      __syncthreads();
      if (walk.pixel >= half) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sums[mine].values[v] += sums[mine + half * columns][v];
    }
    if (walk.pixel == 0 && walk.c < channels) {
      WriteTogether(sums[mine], out, blockIdx.y * in.chunks * channels + stat);
    }
    __syncthreads();
  }
}

// Sets to[at] = f(at, channel, chunk * channels + channel). A thread reads kAhead pixels before it
// writes the first one.
template <int V, class T, class F>
__global__ void __launch_bounds__(map_internal::kBlock, kLeastBlocks<V>)
    MapPixelsKernel(F f, PixelChunks in, Steps steps, T* to) {
  constexpr int kAhead = map_internal::kAhead;
  Walk<V> walk(in.rows);
  const int64_t channels = in.rows.length;
  for (int64_t chunk = blockIdx.z; walk.c < channels && chunk < in.chunks; chunk += gridDim.z) {
    walk.Start(in, steps, chunk);
    for (int64_t r = walk.row; r < walk.end; r += kAhead * int64_t{walk.step}) {
      PixelAt at[kAhead];
      walk.Next(in.rows, steps, at);
      float ahead[kAhead][V];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        Evaluate(f, at[k], walk.c, chunk * channels + walk.c, ahead[k]);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (r + k * int64_t{walk.step} < walk.end) StoreVector(ahead[k], to, at[k].offset);
      }
    }
  }
}

// Returns the smallest power of two that is at least n; at most `most`, which must be one.
inline unsigned PowerOfTwo(int64_t n, unsigned most) {
  unsigned power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Returns the threads of a block: up to 32 of the `groups` of neighbouring channels and the rest
// pixels; or, if the pixels of a channel are the neighbours, as many of these as a chunk has and
// the rest channels.
inline dim3 ThreadsFor(const PixelChunks& in, int64_t groups) {
  constexpr unsigned kBlock = map_internal::kBlock;
  const unsigned neighbours =
      in.rows.inner == 1 ? PowerOfTwo(groups, 32) : PowerOfTwo(in.chunk_rows, kBlock);
  return {neighbours, kBlock / neighbours};
}

// Runs kernel(f, in, steps, to), whose threads take `together` channels each, with each chunk cut
// into at most `most_parts` parts, about kWantedBlocks blocks in all. If there are several parts
// and `partials` is not null, each part has at least four passes of pixels and writes its sums to
// `partials`. Returns the number of parts.
template <class F, class T>
int64_t LaunchParts(const Device& device, void (*kernel)(F, PixelChunks, Steps, T*), const F& f,
                    const PixelChunks& in, int together, int64_t most_parts, T* to, T* partials) {
  constexpr int64_t kWantedBlocks = 2048, kMostBlocks = 65535;
  const int64_t inner = in.rows.inner, length = in.rows.length;
  const dim3 threads = ThreadsFor(in, length / together);
  const int64_t pixels = inner == 1 ? threads.y : threads.x;
  const int64_t lanes = inner == 1 ? threads.x : threads.y;
  const int64_t groups = (length / together + lanes - 1) / lanes;
  const int64_t passes = partials == nullptr ? 1 : 4;
  const int64_t wanted =
      std::min({(kWantedBlocks + in.chunks * groups - 1) / (in.chunks * groups),
                in.chunk_rows / (passes * pixels * map_internal::kAhead), most_parts});
  const int64_t rows = std::max<int64_t>(1, in.chunk_rows);
  const int64_t size = (rows + std::max<int64_t>(1, wanted) - 1) / std::max<int64_t>(1, wanted);
  const int64_t parts = (rows + size - 1) / size;
  const Steps steps = {size, pixels / inner * inner * length + pixels % inner, pixels % inner,
                       (length - 1) * inner};
  Launch(device, kernel,
         dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts),
              static_cast<unsigned>(std::min(in.chunks, kMostBlocks))),
         threads, f, in, steps, parts > 1 && partials != nullptr ? partials : to);
  return parts;
}

// Implements MapPixels on a GPU, for at least one element.
template <class T, class F>
void MapOnGpu(const Device& device, const PixelChunks& in, const F& f, T* to) {
  WithTogether(f, in.rows, to, [&](auto together) {
    constexpr int kV = decltype(together)::value;
    LaunchParts(device, MapPixelsKernel<kV, T, F>, f, in, kV, int64_t{1} << 16, to,
                static_cast<T*>(nullptr));
  });
}
#endif

}  // namespace pixel_sums_internal

// Sets out[chunk][channel] to the sum of f(offset in memory, channel, chunk * channels + channel)
// over the chunk's pixels. If F has a function OfPixel(pixel), what it returns for the number of a
// pixel is called instead of f. `out` is on the device. The order of the additions depends only on
// the shape, the alignment of the arrays and the kind of device.
//
// F may have functions Read<V>(place) and Addresses(), as the functors of batch norm do
// (src/backend/batch_norm_math.h). Then a thread of a GPU reads V neighbouring channels at once,
// if the OR of the addresses is aligned for that: it calls what Read returns with (v, v, v) for v
// from 0 to V - 1.
template <class F>
void SumChunks(const Device& device, const PixelChunks& in, F f, float* out) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    const int64_t sums = in.chunks * in.rows.length;
    if (sums == 0) return;
    float* const partials = device.ReductionScratch();
    int64_t parts = 1;
    WithTogether(f, in.rows, out, [&](auto together) {
      constexpr int kV = decltype(together)::value;
      parts =
          pixel_sums_internal::LaunchParts(device, pixel_sums_internal::PartSumsKernel<kV, F>, f,
                                           in, kV, Device::kReductionScratch / sums, out, partials);
    });
    if (parts == 1) return;
    Launch(device, grouped_sums_internal::JoinSumsKernel<1>, map_internal::Blocks(sums * 32),
           map_internal::kBlock, partials, sums, parts,
           grouped_sums_internal::SumsTo{partials, {out, nullptr}, false});
    return;
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    constexpr int kLanes = pixel_sums_internal::kLanes;
    const int64_t groups = (in.rows.length + kLanes - 1) / kLanes;
    ParallelFor(in.chunks * groups, pixel_sums_internal::ChunkSums<F>{f, in, out, groups},
                MinChunk(in.chunk_rows * kLanes));
  } else {
    RefuseF16();
  }
}

// Sets to[at] = f(at, channel, chunk * channels + channel) for every element, where `at` is its
// offset in memory; f may read its own element of `to`. F may have the functions Read and Addresses
// that SumChunks describes.
template <class T, class F>
void MapPixels(const Device& device, const PixelChunks& in, F f, T* to) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (in.rows.count * in.rows.length > 0) pixel_sums_internal::MapOnGpu(device, in, f, to);
    return;
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    using Each = pixel_sums_internal::StoreEach<T, F>;
    CpuRows(in.rows.count, in.rows.length, PixelStep<Each>{Each{f, to}, in});
  } else {
    RefuseF16();
  }
}

}  // namespace trainer

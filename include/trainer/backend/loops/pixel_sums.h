#pragma once
// Sums over pixels for each channel, and loops over pixels with per-channel values, written once
// for both devices.

#include "trainer/backend/loops/grouped_sums.h"
#include "trainer/backend/loops/pixel_chunks.h"

namespace trainer {

namespace pixel_sums_internal {

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
        for (int l = 0; l < kLanes; ++l) {
          sum[l] += f(r * channels + first + l, first + l, chunk * channels + first + l);
        }
      }
    } else {
      for (int l = 0; l < lanes; ++l) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t at = in.rows.Start(r) + (first + l) * in.rows.inner;
          sum[l] += f(at, first + l, chunk * channels + first + l);
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
inline constexpr int kTileChannels = 32, kTileRows = 8;
inline constexpr int kPassRows = kTileRows * map_internal::kAhead;

// Returns the offset of channel 0 of a pixel; divides only where pixels are not contiguous.
HD int64_t StartOf(const Rows& rows, int64_t row) {
  return rows.inner == 1 ? row * rows.length : rows.Start(row);
}

// The pixels that a block processes, [begin, end). Each chunk is cut into gridDim.y parts of
// `part_rows` pixels, and blockIdx counts groups of channels, parts and chunks, so that no thread
// divides to find its place.
struct Part {
  int64_t begin, end;
  __device__ Part(const PixelChunks& in, int64_t chunk, int64_t part_rows) {
    const int64_t first = chunk * in.chunk_rows;
    begin = first + blockIdx.y * part_rows;
    end = first + in.chunk_rows < in.rows.count ? first + in.chunk_rows : in.rows.count;
    if (begin + part_rows < end) end = begin + part_rows;
  }
};

// Sums 32 neighbouring channels of a part at a time. A thread reads kAhead pixels before it adds
// the first one.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    PartSumsKernel(F f, PixelChunks in, int64_t part_rows, float* out) {
  constexpr int kAhead = map_internal::kAhead;
  __shared__ float sums[kTileRows][kTileChannels + 1];
  const int64_t channels = in.rows.length, c = blockIdx.x * kTileChannels + threadIdx.x;
  for (int64_t chunk = blockIdx.z; chunk < in.chunks; chunk += gridDim.z) {
    const Part part(in, chunk, part_rows);
    const int64_t stat = chunk * channels + c;
    float sum = 0;
    for (int64_t r = part.begin + threadIdx.y; c < channels && r < part.end; r += kPassRows) {
      float ahead[kAhead] = {};
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = r + k * kTileRows;
        if (row < part.end) ahead[k] = f(StartOf(in.rows, row) + c * in.rows.inner, c, stat);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) sum += ahead[k];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < channels) {
      for (int y = 1; y < kTileRows; ++y) sum += sums[y][threadIdx.x];
      out[blockIdx.y * in.chunks * channels + stat] = sum;
    }
    __syncthreads();
  }
}

// Sets to[at] = f(at, channel, chunk * channels + channel). A thread reads kAhead pixels before it
// writes the first one.
template <class T, class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    MapPixelsKernel(F f, PixelChunks in, int64_t part_rows, T* to) {
  constexpr int kAhead = map_internal::kAhead;
  const int64_t channels = in.rows.length, c = blockIdx.x * kTileChannels + threadIdx.x;
  for (int64_t chunk = blockIdx.z; c < channels && chunk < in.chunks; chunk += gridDim.z) {
    const Part part(in, chunk, part_rows);
    for (int64_t r = part.begin + threadIdx.y; r < part.end; r += kPassRows) {
      float ahead[kAhead] = {};
      int64_t at[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = r + k * kTileRows;
        at[k] = StartOf(in.rows, row) + c * in.rows.inner;
        if (row < part.end) ahead[k] = f(at[k], c, chunk * channels + c);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (r + k * kTileRows < part.end) Store(to[at[k]], ahead[k]);
      }
    }
  }
}

// Runs kernel(f, in, part_rows, to) with each chunk cut into at most `most_parts` parts: about
// kWantedBlocks blocks in all, each with at least four passes of pixels. Returns the parts.
template <class F, class T>
int64_t LaunchParts(const Device& device, void (*kernel)(F, PixelChunks, int64_t, T*), const F& f,
                    const PixelChunks& in, int64_t most_parts, T* to, T* partials) {
  constexpr int64_t kWantedBlocks = 2048, kMostBlocks = 65535;
  const int64_t groups = (in.rows.length + kTileChannels - 1) / kTileChannels;
  const int64_t wanted = std::min({(kWantedBlocks + in.chunks * groups - 1) / (in.chunks * groups),
                                   in.chunk_rows / (4 * kPassRows), most_parts});
  const int64_t rows = std::max<int64_t>(1, in.chunk_rows);
  const int64_t size = (rows + std::max<int64_t>(1, wanted) - 1) / std::max<int64_t>(1, wanted);
  const int64_t parts = (rows + size - 1) / size;
  Launch(device, kernel,
         dim3(static_cast<unsigned>(groups), static_cast<unsigned>(parts),
              static_cast<unsigned>(std::min(in.chunks, kMostBlocks))),
         dim3(kTileChannels, kTileRows), f, in, size, parts > 1 ? partials : to);
  return parts;
}
#endif

}  // namespace pixel_sums_internal

// Sets out[chunk][channel] to the sum of f(offset in memory, channel, chunk * channels + channel)
// over the chunk's pixels. `out` is on the device. The order of the additions depends only on the
// shape and the kind of device.
template <class F>
void SumChunks(const Device& device, const PixelChunks& in, F f, float* out) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    const int64_t sums = in.chunks * in.rows.length;
    if (sums == 0) return;
    float* const partials = device.ReductionScratch();
    const int64_t parts =
        pixel_sums_internal::LaunchParts(device, pixel_sums_internal::PartSumsKernel<F>, f, in,
                                         Device::kReductionScratch / sums, out, partials);
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
// offset in memory; f may read its own element of `to`.
template <class T, class F>
void MapPixels(const Device& device, const PixelChunks& in, F f, T* to) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (in.rows.count * in.rows.length == 0) return;
    pixel_sums_internal::LaunchParts(device, pixel_sums_internal::MapPixelsKernel<T, F>, f, in,
                                     int64_t{1} << 16, to, to);
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

#pragma once
// Sums over pixels for each channel, and loops over pixels with per-channel values, written once
// for both devices.

#include "trainer/backend/loops/map_rows.h"
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

#ifdef TRAINER_DEVICE_CODE
inline constexpr int kTileRows = 8;

// Each block sums 32 neighbouring channels of a chunk, kTileRows pixels at a time.
template <class F>
__global__ void ChunkSumsKernel(F f, PixelChunks in, float* out) {
  __shared__ float part[kTileRows][33];
  const int64_t channels = in.rows.length, groups = (channels + 31) / 32;
  for (int64_t tile = blockIdx.x; tile < in.chunks * groups; tile += gridDim.x) {
    const int64_t chunk = tile / groups, c = tile % groups * 32 + threadIdx.x;
    const int64_t begin = chunk * in.chunk_rows, wish = begin + in.chunk_rows;
    const int64_t end = wish < in.rows.count ? wish : in.rows.count;
    float sum = 0;
    for (int64_t r = begin + threadIdx.y; c < channels && r < end; r += kTileRows) {
      sum += f(in.rows.Start(r) + c * in.rows.inner, c, chunk * channels + c);
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < channels) {
      for (int y = 1; y < kTileRows; ++y) sum += part[y][threadIdx.x];
      out[chunk * channels + c] = sum;
    }
    __syncthreads();
  }
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
    const int64_t tiles = in.chunks * ((in.rows.length + 31) / 32);
    if (tiles > 0) {
      Launch(device, pixel_sums_internal::ChunkSumsKernel<F>,
             static_cast<unsigned>(std::min<int64_t>(tiles, 1 << 16)),
             dim3(32, pixel_sums_internal::kTileRows), f, in, out);
    }
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

// Calls f(offset in memory, channel, chunk * channels + channel) for every element. The calls must
// not depend on each other.
template <class F>
void ForEachPixel(const Device& device, const PixelChunks& in, F f) {
  MapRows(device, in.rows.count, in.rows.length, PixelStep<F>{f, in});
}

}  // namespace trainer

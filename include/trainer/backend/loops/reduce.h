#pragma once
// Sums over many elements, written once for both devices.

#include "trainer/backend/loops/map_rows.h"

namespace trainer {

namespace reduce_internal {

inline constexpr int64_t kChunks = 512;
static_assert(kChunks <= Device::kReductionScratch);

#ifdef TRAINER_DEVICE_CODE
// Returns the sum over all threads of the block, to each of them. Called by all threads; a second
// call needs a __syncthreads() before it.
template <class S>
__device__ S SumOfBlock(S sum) {
  __shared__ S warps[32];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  S all = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) all += warps[w];
  return all;
}

// Sets partial[b] to the sum of f(i) over chunk b, with a block per chunk.
template <class F>
__global__ void ChunksKernel(F f, int64_t n, int64_t chunk, float* partial) {
  const int64_t begin = blockIdx.x * chunk, end = begin + chunk < n ? begin + chunk : n;
  float sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += f(i);
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block adds the sums of all chunks as doubles and writes the scaled total.
template <int kThreads>
__global__ void TotalKernel(const float* partial, int64_t chunks, float scale, float* out) {
  double sum = 0;
  for (int64_t c = threadIdx.x; c < chunks; c += kThreads) sum += partial[c];
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) *out = static_cast<float>(sum) * scale;
}

// Implements ReduceSum on a GPU with two kernels, which pass the chunks' sums in the device's
// ReductionScratch.
template <class F>
void CudaReduceSum(const Device& device, int64_t n, F f, int64_t chunk, float scale, float* out) {
  const int64_t chunks = (n + chunk - 1) / chunk;
  if (chunks > 0) {
    Launch(device, ChunksKernel<F>, static_cast<unsigned>(chunks), map_internal::kBlock, f, n,
           chunk, device.ReductionScratch());
  }
  Launch(device, TotalKernel<map_internal::kBlock>, 1, map_internal::kBlock,
         device.ReductionScratch(), chunks, scale, out);
}
#endif

}  // namespace reduce_internal

// Sets *out = scale * sum of f(i) over i in [0, n); `out` is on the device. The chunks' sums are
// added as doubles, and the order of the additions depends only on n, not on the number of threads.
template <class F>
void ReduceSum(const Device& device, int64_t n, F f, float scale, float* out) {
  const int64_t chunk =
      std::max<int64_t>(4096, (n + reduce_internal::kChunks - 1) / reduce_internal::kChunks);
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    return reduce_internal::CudaReduceSum(device, n, f, chunk, scale, out);
  }
#endif
  (void)device;
  const int64_t chunks = (n + chunk - 1) / chunk;
  float partial[reduce_internal::kChunks];
  float* const sums = partial;
  ParallelFor(
      chunks,
      [=](int64_t c) __attribute__((always_inline)) {
        const int64_t begin = c * chunk;
        sums[c] = CpuRow{c, std::min(chunk, n - begin)}.Sum([&](
            int64_t i) __attribute__((always_inline)) { return f(begin + i); });
      },
      4);
  double sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += partial[c];
  *out = static_cast<float>(sum) * scale;
}

}  // namespace trainer

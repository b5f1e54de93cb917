#pragma once
// Sums over many elements, written once for both devices.

#include "trainer/backend/map_rows.h"

namespace trainer {

namespace reduce_internal {

inline constexpr int64_t kChunks = 512;

#ifdef __CUDACC__
template <class F>
__global__ void SumKernel(F f, int64_t n, float scale, float* out) {
  __shared__ float warps[32];
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += f(i);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float all = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) all += warps[w];
  *out = all * scale;
}

template <class T>
__global__ void ColumnSumsKernel(const T* x, int64_t rows, int64_t columns, float* out) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int64_t r = 0; r < rows; ++r) sum += Load(x[r * columns + c]);
  out[c] += sum;
}
#endif

}  // namespace reduce_internal

// *out = scale * sum of f(i) over i in [0, n); `out` lies on the device. The order of the additions
// depends on n alone, not on the number of threads.
template <class F>
void ReduceSum(const Device& device, int64_t n, F f, float scale, float* out) {
#ifdef __CUDACC__
  if (device.kind() == DeviceKind::kCuda) {
    reduce_internal::SumKernel<<<1, 1024, 0, map_internal::StreamOf(device)>>>(f, n, scale, out);
    return;
  }
#endif
  (void)device;
  const int64_t chunk =
      std::max<int64_t>(4096, (n + reduce_internal::kChunks - 1) / reduce_internal::kChunks);
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

// out[c] += sum over r of x[r][c]; x is (rows, columns) row-major: a bias gradient.
inline void AddColumnSums(const Device& device, const ConstTensor& x, int64_t rows, int64_t columns,
                          float* out) {
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* in = x.As<T>();
#ifdef __CUDACC__
    if (device.kind() == DeviceKind::kCuda) {
      reduce_internal::ColumnSumsKernel<<<map_internal::Blocks(columns), map_internal::kBlock, 0,
                                          map_internal::StreamOf(device)>>>(in, rows, columns, out);
      return;
    }
#endif
    (void)device;
    ParallelRanges(columns, std::max<int64_t>(16, (1 << 18) / std::max<int64_t>(rows, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = 0; r < rows; ++r) {
                       const T* row = in + r * columns;
                       parallel_for_internal::Loop(
                           begin, end, [=](int64_t c) __attribute__((always_inline)) {
                             out[c] += Load(row[c]);
                           });
                     }
                   });
  });
}

}  // namespace trainer

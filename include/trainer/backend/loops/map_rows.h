#pragma once
// Row-wise math, written once: a functor gets a row and uses its Max, Sum and ForEach. A row is a
// loop on the CPU and a warp on the GPU.
//
//   struct Normalize {
//     const float* x; float* y; int64_t length;
//     template <class Row> HD void operator()(const Row& row) const {
//       const int64_t at = row.index * length;
//       const float sum = row.Sum([&](int64_t i) { return x[at + i]; });
//       row.ForEach([&](int64_t i) { y[at + i] = x[at + i] / sum; });
//     }
//   };
//   MapRows(device, rows, length, Normalize{x, y, length});
//
// The functor computes the addresses: see AxisRows in shape.h.

#include <cmath>

#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/map.h"

namespace trainer {

#ifdef TRAINER_DEVICE_CODE
namespace map_internal {

// One row on a GPU, with the functions of CpuRow. Each of the 32 threads of a warp has this object
// with its own `lane`, and all of them must make the same calls.
struct WarpRow {
  int64_t index, length;
  int lane;

  // Returns the sum to all threads.
  template <class F>
  __device__ float Sum(const F& f) const {
    float sum = 0;
    for (int64_t i = lane; i < length; i += 32) sum += f(i);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
  }
  template <class F>
  __device__ float Max(const F& f) const {
    float best = -FLT_MAX;
    for (int64_t i = lane; i < length; i += 32) best = fmaxf(best, f(i));
    for (int step = 16; step > 0; step /= 2) {
      best = fmaxf(best, __shfl_xor_sync(~0u, best, step));
    }
    return best;
  }
  template <class F>
  __device__ void ForEach(const F& f) const {
    for (int64_t i = lane; i < length; i += 32) f(i);
  }
  template <class F, class G>
  __device__ void StoreEach(const F& value, const G& store) const {
    StoreAhead(lane, 32, length, value, store);
  }
  // Runs f on one thread of the warp.
  template <class F>
  __device__ void Once(const F& f) const {
    if (lane == 0) f();
  }
};

// Calls f(row) for each row, with one warp per row.
template <class F>
__global__ void RowsKernel(F f, int64_t rows, int64_t length) {
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / 32;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32; row < rows;
       row += warps) {
    f(WarpRow{row, length, static_cast<int>(threadIdx.x % 32)});
  }
}

}  // namespace map_internal
#endif

// Calls f(row) for each row of [0, rows). Rows must not depend on each other.
template <class F>
void MapRows(const Device& device, int64_t rows, int64_t length, F f) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (rows > 0) {
      Launch(device, map_internal::RowsKernel<F>, map_internal::Blocks(rows * 32),
             map_internal::kBlock, f, rows, length);
    }
    return;
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    CpuRows(rows, length, f);
  } else {
    RefuseF16();
  }
}

}  // namespace trainer

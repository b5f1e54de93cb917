#pragma once
// Element-wise math, written once: a functor on floats marked HD runs as a vectorised loop on the
// CPU and, where nvcc compiles the file, as a kernel on the GPU.
//
//   struct Scale { float by; HD float operator()(float x) const { return by * x; } };
//   Map(device, Scale{2}, y, x);
//
// All operands of one call have the same storage type and count; functors get and return floats.
// See Device::Convert to convert between types.

#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/launch.h"
#include "trainer/base/host_device.h"

#if defined(TRAINER_CUDA) && !defined(__CUDACC__)
#error \
    "a file that includes map.h must be compiled by nvcc in a CUDA build: mark its module KERNELS"
#endif

namespace trainer {

#ifdef TRAINER_DEVICE_CODE
namespace map_internal {

inline constexpr int kBlock = 256;

// Returns how many blocks of threads a loop over n elements gets. They are at most 65536, so each
// thread of a kernel loops over all elements that it must process.
inline unsigned Blocks(int64_t n) {
  return static_cast<unsigned>(std::min<int64_t>((n + kBlock - 1) / kBlock, 1 << 16));
}

// Calls f(i) for each i of [0, n).
template <class F>
__global__ void ForEachKernel(F f, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

// A thread reads this many elements before it writes any, so that the reads overlap. The compiler
// cannot reorder them itself, because `out` may be one of the inputs.
inline constexpr int kAhead = 4;

// Sets out[i] = f(i, in[i]...) for each i of [0, n).
template <class F, class T, class... Ts>
__global__ void MapIndexedKernel(F f, int64_t n, T* out, const Ts*... in) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; first < n; first += kAhead * step) {
    float values[kAhead] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + k * step;
      if (i < n) values[k] = f(i, Load(in[i])...);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + k * step;
      if (i < n) Store(out[i], values[k]);
    }
  }
}

// Calls f(p[i]...) with references for each i of [0, n).
template <class F, class... Ts>
__global__ void UpdateKernel(F f, int64_t n, Ts*... p) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(p[i]...);
}

}  // namespace map_internal
#endif

// Calls f(i) for each i of [0, n). The calls must not depend on each other. `work` is the number of
// operations per call: a few long calls are divided among a CPU's threads, too.
template <class F>
void ForEach(const Device& device, int64_t n, F f, int64_t work = 1) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (n > 0) {
      Launch(device, map_internal::ForEachKernel<F>, map_internal::Blocks(n), map_internal::kBlock,
             f, n);
    }
    return;
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    ParallelFor(n, f, MinChunk(work));
  } else {
    RefuseF16();
  }
}

// Sets out[i] = f(i, in[i]...), where i counts elements in memory order. `out` may be one of the
// inputs.
template <class F, class... Ins>
void MapIndexed(const Device& device, F f, const Tensor& out, const Ins&... ins) {
  const int64_t n = out.Count();
  DispatchDtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    auto run = [&]<class... Ts>(T* to, const Ts*... in) {
#ifdef TRAINER_DEVICE_CODE
      if (device.kind() == DeviceKind::kCuda) {
        if (n > 0) {
          const int64_t threads = (n + map_internal::kAhead - 1) / map_internal::kAhead;
          Launch(device, map_internal::MapIndexedKernel<F, T, Ts...>, map_internal::Blocks(threads),
                 map_internal::kBlock, f, n, to, in...);
        }
        return;
      }
#endif
      (void)device;
      if constexpr (kHasCpuLoop<T>) {
        ParallelFor(
            n, [=](int64_t i)
                   __attribute__((always_inline)) { Store(to[i], f(i, Load(in[i])...)); });
      } else {
        RefuseF16();
      }
    };
    run(out.template As<T>(), ins.template As<T>()...);
  });
}

namespace map_internal {

// Lets MapIndexed call a functor of Map, which does not take the index.
template <class F>
struct WithoutIndex {
  F f;
  template <class... Floats>
  HD float operator()(int64_t, Floats... x) const {
    return f(x...);
  }
};

}  // namespace map_internal

// Sets out[i] = f(in[i]...). `out` may be one of the inputs.
template <class F, class... Ins>
void Map(const Device& device, F f, const Tensor& out, const Ins&... ins) {
  MapIndexed(device, map_internal::WithoutIndex<F>{f}, out, ins...);
}

// Calls f(p[i]...) with references: one pass that reads and writes several float arrays of n
// elements.
template <class F, class... Ts>
void Update(const Device& device, F f, int64_t n, Ts*... p) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (n > 0) {
      Launch(device, map_internal::UpdateKernel<F, Ts...>, map_internal::Blocks(n),
             map_internal::kBlock, f, n, p...);
    }
    return;
  }
#endif
  (void)device;
  ParallelFor(
      n, [=](int64_t i) __attribute__((always_inline)) { f(p[i]...); });
}

}  // namespace trainer

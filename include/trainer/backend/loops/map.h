#pragma once
// Element-wise math, written once: a functor on floats marked HD runs as a vectorised loop on the
// CPU and, where nvcc compiles the file, as a kernel on the GPU.
//
//   struct Scale { float by; HD float operator()(float x) const { return by * x; } };
//   Map(device, Scale{2}, y, x);
//
// All operands of one call have the same storage type and count; functors get and return floats.
// See Device::Convert to convert between types.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/launch.h"
#include "trainer/backend/loops/vector_access.h"
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

// Returns how many blocks of threads run a loop over n elements. A thread takes two groups of four
// neighbours at a time if `fours`, the number of groups, is positive, else kAhead elements.
inline unsigned BlocksOfFours(int64_t n, int64_t fours) {
  const int64_t share = fours > 0 ? 8 : kAhead;
  return Blocks((n + share - 1) / share);
}

template <class T>
using Four = Neighbours<T, 4>;

// Returns f(first + k, in[k]...) for k = 0 to 3.
template <class F, class... Ts>
HD Four<float> MapFour(const F& f, int64_t first, const Four<Ts>&... in) {
  Four<float> values;
  for (int k = 0; k < 4; ++k) values.values[k] = f(first + k, Load(in[k])...);
  return values;
}

// Returns the functor for the elements of a thread: f.Prepared() if F has that function, which may
// compute in advance what all elements share, or else f.
template <class F>
HD decltype(auto) PreparedFor(const F& f) {
  if constexpr (requires { f.Prepared(); }) {
    return f.Prepared();
  } else {
    return (f);
  }
}

// Returns how many groups of four neighbours n elements of these arrays have; 0 if an array is not
// aligned to four elements.
template <class T, class... Ts>
int64_t FoursOf(int64_t n, const T* array, const Ts*... others) {
  const uintptr_t all =
      (reinterpret_cast<uintptr_t>(array) | ... | reinterpret_cast<uintptr_t>(others));
  return all % (4 * std::max({sizeof(T), sizeof(Ts)...})) == 0 ? n / 4 : 0;
}

// Sets out[i] = functor(i, in[i]...) for each i of [0, n). The first `fours` groups of four
// neighbours are read and written together, two groups at a time.
template <class F, class T, class... Ts>
__global__ void MapIndexedKernel(F functor, int64_t n, int64_t fours, T* out, const Ts*... in) {
  const auto& f = PreparedFor(functor);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t g = thread; g < fours; g += 2 * step) {
    const bool has_other = g + step < fours;
    const int64_t other = has_other ? g + step : g;
    const Four<float> values = MapFour(f, 4 * g, LoadVector<4>(in, 4 * g)...);
    const Four<float> more = MapFour(f, 4 * other, LoadVector<4>(in, 4 * other)...);
    StoreVector(values.values, out, 4 * g);
    if (has_other) StoreVector(more.values, out, 4 * other);
  }
  for (int64_t first = 4 * fours + thread; first < n; first += kAhead * step) {
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

// Launches MapIndexedKernel, if there are elements. The arrays may have different types.
template <class F, class T, class... Ts>
void LaunchMap(const Device& device, F f, int64_t n, T* out, const Ts*... in) {
  if (n == 0) return;
  const int64_t fours = FoursOf(n, out, in...);
  Launch(device, MapIndexedKernel<F, T, Ts...>, BlocksOfFours(n, fours), kBlock, f, n, fours, out,
         in...);
}

// Calls store(i, value(i)) for i = first, first + step, ... below `end`. It computes kAhead values
// before it stores them, so that their reads overlap.
template <class F, class G>
HD void StoreAhead(int64_t first, int64_t step, int64_t end, const F& value, const G& store) {
  for (; first < end; first += kAhead * step) {
    float values[kAhead] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + k * step;
      if (i < end) values[k] = value(i);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + k * step;
      if (i < end) store(i, values[k]);
    }
  }
}

// Items of an array that a thread reads before it writes any.
template <int kItems, class T>
struct Ahead {
  std::remove_const_t<T> x[kItems];
};
template <class T>
HD void WriteUnlessConst(T* to, int64_t i, const T& value) {
  to[i] = value;
}
template <class T>
HD void WriteUnlessConst(const T*, int64_t, const T&) {}

// Calls f with references to copies of p[i]... for i = first, first + step, ... below n, and writes
// the copies back. It reads kItems items of each array before it writes any.
template <int kItems, class F, class... Ts>
HD void UpdateAhead(const F& f, int64_t first, int64_t step, int64_t n, Ts*... p) {
  for (; first < n; first += kItems * step) {
    const auto update = [&](Ahead<kItems, Ts>... copies) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = first + k * step;
        if (i >= n) continue;
        ((copies.x[k] = p[i]), ...);
        f(copies.x[k]...);
      }
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = first + k * step;
        if (i < n) (WriteUnlessConst(p, i, copies.x[k]), ...);
      }
    };
    update(Ahead<kItems, Ts>()...);
  }
}

template <class T>
HD Four<T>* AsFours(T* array) {
  return reinterpret_cast<Four<T>*>(array);
}
template <class T>
HD const Four<T>* AsFours(const T* array) {
  return reinterpret_cast<const Four<T>*>(array);
}

// Calls f with references to copies of p[i]... for each i of [0, n), and writes the copies back.
// The first `fours` groups of four neighbours are read and written together, two groups at a time.
template <class F, class... Ts>
__global__ void UpdateKernel(F f, int64_t n, int64_t fours, Ts*... p) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto update_four = [&f](auto&... four) {
#pragma unroll
    for (int k = 0; k < 4; ++k) f(four.values[k]...);
  };
  UpdateAhead<2>(update_four, thread, step, fours, AsFours(p)...);
  UpdateAhead<kAhead>(f, 4 * fours + thread, step, n, p...);
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
        return map_internal::LaunchMap(device, f, n, to, in...);
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
  HD auto Prepared() const requires requires(const F& of) { of.Prepared(); }
  { return WithoutIndex<decltype(f.Prepared())>{f.Prepared()}; }
};

}  // namespace map_internal

// Sets out[i] = f(in[i]...). `out` may be one of the inputs. If F has a function Prepared(), a GPU
// calls what this returns instead of f, and the function only once per thread.
template <class F, class... Ins>
void Map(const Device& device, F f, const Tensor& out, const Ins&... ins) {
  MapIndexed(device, map_internal::WithoutIndex<F>{f}, out, ins...);
}

// Calls f(p[i]...) with references: one pass that reads and writes several float arrays of n
// elements, which must not overlap. Arrays that f only reads should be const: a GPU writes the
// others.
template <class F, class... Ts>
void Update(const Device& device, F f, int64_t n, Ts*... p) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (n > 0) {
      const int64_t fours = map_internal::FoursOf(n, p...);
      Launch(device, map_internal::UpdateKernel<F, Ts...>, map_internal::BlocksOfFours(n, fours),
             map_internal::kBlock, f, n, fours, p...);
    }
    return;
  }
#endif
  (void)device;
  ParallelFor(
      n, [=](int64_t i) __attribute__((always_inline)) { f(p[i]...); });
}

}  // namespace trainer

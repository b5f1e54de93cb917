#pragma once
// Device code for the host's compiler: the built-ins of nvcc that the kernels of this project use.
// emulated_gpu runs the kernels, see block.cc: blocks one after the other, the threads of a block
// as fibres that really wait for each other.
//
// A __shared__ variable is a static one: the blocks of a kernel use it in turn, and each block
// finds what the previous one left, where a GPU has arbitrary values. It cannot be poisoned,
// because the addresses of static variables of templates are unknown.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

namespace emulated_gpu {

// The running thread's coordinates. One block runs at a time.
struct Coordinates {
  dim3 thread, block, block_size, grid_size;
};
inline constinit thread_local Coordinates at;
// Whether this thread of the host runs a kernel at the moment.
inline constinit thread_local bool in_kernel = false;

// Where in the source a thread waits for others.
struct Site {
  const char* file;
  int line;
  friend bool operator==(const Site&, const Site&) = default;
};

enum class WarpOp {
  kShuffleIndex,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kAny,
  kAll,
  kBallot,
  kSync
};

// One thread's part in an exchange between the threads of a warp.
struct WarpCall {
  WarpOp op;
  unsigned mask;
  int argument;       // the lane, the distance, or the mask of a shuffle; the predicate of a vote
  int width;          // lanes in each group of a shuffle
  const void* value;  // the `bytes` that this thread gives
  void* result;
  size_t bytes;
  Site site;
};

// A kernel launch. `run` calls the kernel once, for the thread that `at` names. The kernel's
// parameters are the `bytes` at `parameters`, which are valid during the call of the hook.
struct KernelLaunch {
  void* stream;
  dim3 blocks, threads;
  std::function<void()> run;
  const void* parameters;
  size_t bytes;
};

// The emulated GPU sets these if it is linked. `launch` throws if the launch is refused.
struct Hooks {
  void (*launch)(KernelLaunch kernel) = nullptr;
  void (*sync)(Site site) = nullptr;
  void (*warp)(const WarpCall& call) = nullptr;
};
inline constinit Hooks hooks = {};

template <class F>
void Launch(void* stream, dim3 blocks, dim3 threads, F run) {
  const void* parameters = nullptr;
  size_t bytes = 0;
  if constexpr (std::is_trivially_copyable_v<F>) {
    parameters = &run;
    bytes = sizeof(run);
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&run);  // so that no word of it looks like an address by chance
#endif
#endif
  }
  hooks.launch({stream, blocks, threads, run, parameters, bytes});
}

template <class T>
T Shuffle(WarpOp op, unsigned mask, T value, int argument, int width, Site site) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  T result;
  hooks.warp({op, mask, argument, width, &value, &result, sizeof(T), site});
  return result;
}

inline unsigned Vote(WarpOp op, unsigned mask, int predicate, Site site) {
  unsigned result = 0;
  hooks.warp({op, mask, predicate, 32, nullptr, &result, sizeof(result), site});
  return result;
}

template <class T>
T Exchange(T* address, T value) {
  const T old = *address;
  *address = value;
  return old;
}

template <class To, class From>
To SameBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace emulated_gpu

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (emulated_gpu::at.thread)
#define blockIdx (emulated_gpu::at.block)
#define blockDim (emulated_gpu::at.block_size)
#define gridDim (emulated_gpu::at.grid_size)

// The last two parameters are the caller's place in the source.
#define EMULATED_GPU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATED_GPU_SITE) { emulated_gpu::hooks.sync({file, line}); }
inline void __syncwarp(unsigned mask = ~0u, EMULATED_GPU_SITE) {
  emulated_gpu::Vote(emulated_gpu::WarpOp::kSync, mask, 0, {file, line});
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMULATED_GPU_SITE) {
  return emulated_gpu::Shuffle(emulated_gpu::WarpOp::kShuffleIndex, mask, value, lane, width,
                               {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_GPU_SITE) {
  return emulated_gpu::Shuffle(emulated_gpu::WarpOp::kShuffleUp, mask, value, static_cast<int>(by),
                               width, {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_GPU_SITE) {
  return emulated_gpu::Shuffle(emulated_gpu::WarpOp::kShuffleDown, mask, value,
                               static_cast<int>(by), width, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32, EMULATED_GPU_SITE) {
  return emulated_gpu::Shuffle(emulated_gpu::WarpOp::kShuffleXor, mask, value, by, width,
                               {file, line});
}
inline int __any_sync(unsigned mask, int predicate, EMULATED_GPU_SITE) {
  return emulated_gpu::Vote(emulated_gpu::WarpOp::kAny, mask, predicate, {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMULATED_GPU_SITE) {
  return emulated_gpu::Vote(emulated_gpu::WarpOp::kAll, mask, predicate, {file, line}) != 0;
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATED_GPU_SITE) {
  return emulated_gpu::Vote(emulated_gpu::WarpOp::kBallot, mask, predicate, {file, line});
}
#undef EMULATED_GPU_SITE

// One thread runs at a time, so that each of these is atomic. The overloads are the same as nvcc's.
#define EMULATED_GPU_ATOMIC(name, T, result)                        \
  inline T name(T* address, T value) {                              \
    return emulated_gpu::Exchange(address, static_cast<T>(result)); \
  }
EMULATED_GPU_ATOMIC(atomicAdd, int, static_cast<int>(static_cast<unsigned>(*address) + value))
EMULATED_GPU_ATOMIC(atomicAdd, unsigned, *address + value)
EMULATED_GPU_ATOMIC(atomicAdd, unsigned long long, *address + value)
EMULATED_GPU_ATOMIC(atomicAdd, float, *address + value)
EMULATED_GPU_ATOMIC(atomicAdd, double, *address + value)
EMULATED_GPU_ATOMIC(atomicMin, int, *address < value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMin, unsigned, *address < value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMin, unsigned long long, *address < value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMin, long long, *address < value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMax, int, *address > value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMax, unsigned, *address > value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMax, unsigned long long, *address > value ? *address : value)
EMULATED_GPU_ATOMIC(atomicMax, long long, *address > value ? *address : value)
EMULATED_GPU_ATOMIC(atomicOr, int, *address | value)
EMULATED_GPU_ATOMIC(atomicOr, unsigned, *address | value)
EMULATED_GPU_ATOMIC(atomicExch, int, value)
EMULATED_GPU_ATOMIC(atomicExch, unsigned, value)
EMULATED_GPU_ATOMIC(atomicExch, unsigned long long, value)
EMULATED_GPU_ATOMIC(atomicExch, float, value)
#undef EMULATED_GPU_ATOMIC
#define EMULATED_GPU_CAS(T)                                                          \
  inline T atomicCAS(T* address, T expected, T value) {                              \
    return emulated_gpu::Exchange(address, *address == expected ? value : *address); \
  }
EMULATED_GPU_CAS(int)
EMULATED_GPU_CAS(unsigned)
EMULATED_GPU_CAS(unsigned long long)
EMULATED_GPU_CAS(unsigned short)
#undef EMULATED_GPU_CAS

inline int __float_as_int(float x) { return emulated_gpu::SameBits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulated_gpu::SameBits<unsigned>(x); }
inline float __int_as_float(int x) { return emulated_gpu::SameBits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulated_gpu::SameBits<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T>
T __ldg(const T* address) {
  return *address;
}

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

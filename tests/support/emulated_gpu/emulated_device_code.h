#pragma once
// Device code for the host's compiler: what nvcc knows by itself and the kernels of this project
// use. emulated_gpu runs them, see launch.cc: blocks one after the other, the threads of a block as
// fibres that really wait for each other.

#include <cstdint>
#include <functional>

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

// Queues a kernel; `run` calls it once for the thread that `at` names. Set by the emulated GPU
// where one is linked. Throws what a launch is refused with.
using LaunchFunction = void (*)(void* stream, dim3 blocks, dim3 threads, std::function<void()> run);
inline constinit LaunchFunction launch_function = nullptr;
inline void Launch(void* stream, dim3 blocks, dim3 threads, std::function<void()> run) {
  launch_function(stream, blocks, threads, std::move(run));
}


// What `__syncthreads()` and the exchanges between the threads of a warp do. Set likewise.
struct BlockCalls {
  void (*sync)();
  // `bytes` of `value` of the thread whose lane differs by `mask`, into `value`.
  void (*shuffle_xor)(void* value, size_t bytes, int mask);
};
inline constinit BlockCalls block_calls = {};

}  // namespace emulated_gpu

#define __global__
#define __device__
#define __shared__ static
#define threadIdx (emulated_gpu::at.thread)
#define blockIdx (emulated_gpu::at.block)
#define blockDim (emulated_gpu::at.block_size)
#define gridDim (emulated_gpu::at.grid_size)

inline void __syncthreads() { emulated_gpu::block_calls.sync(); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  emulated_gpu::block_calls.shuffle_xor(&value, sizeof(value), mask);
  return value;
}

#pragma once
// The one place from which device code is started. nvcc compiles kernels for GPUs. With
// TRAINER_CUDA_EMULATED the host's compiler does: <emulated_device_code.h> of the tests then says
// what threadIdx, __shared__ and __syncthreads() are, and an emulated GPU runs them.

#include "trainer/backend/device/device.h"
#include "trainer/base/host_device.h"

#ifdef TRAINER_DEVICE_CODE

#ifndef __CUDACC__
#include <emulated_device_code.h>
#endif

namespace trainer {

#ifdef __CUDACC__
// Throws what is wrong with the launch before it.
void CheckLaunch();
#endif

// Queues kernel(args...) on the device's stream, for `blocks` blocks of `threads` threads. The
// arguments become the kernel's parameters now, and are copied. Throws where the launch is refused.
template <class... Params, class... Args>
void Launch(const Device& device, void (*kernel)(Params...), dim3 blocks, dim3 threads,
            const Args&... args) {
#ifdef __CUDACC__
  kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(device.Stream())>>>(
      static_cast<Params>(args)...);
  CheckLaunch();
#else
  emulated_gpu::Launch(device.Stream(), blocks, threads,
                       [kernel, ... params = static_cast<Params>(args)] { kernel(params...); });
#endif
}

}  // namespace trainer

#endif

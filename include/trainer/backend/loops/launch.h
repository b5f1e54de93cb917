#pragma once
// The only place that launches device code. nvcc compiles the kernels for GPUs. With
// TRAINER_CUDA_EMULATED the host's compiler compiles them: <emulated_device_code.h> of the tests
// then defines threadIdx, __shared__ and __syncthreads(), and an emulated GPU runs the kernels.

#include "trainer/backend/device/device.h"
#include "trainer/base/host_device.h"

#ifdef TRAINER_DEVICE_CODE

#ifndef __CUDACC__
#include <emulated_device_code.h>
#endif

namespace trainer {

#ifdef __CUDACC__
// Throws the error of the preceding launch, if any.
void CheckLaunch();
#endif

// Queues kernel(args...) on the device's stream with `blocks` blocks of `threads` threads. The
// arguments are converted to the kernel's parameters and copied at once. Throws if the launch is
// refused.
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

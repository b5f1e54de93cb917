#pragma once
// HD marks a function that runs on the host and, where a file holds device code, on the device too.

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD __attribute__((always_inline)) inline
#endif

// Whether this file's device code is compiled: by nvcc, or for the emulated GPU of the tests by the
// host's compiler (backend/loops/launch.h).
#if defined(__CUDACC__) || defined(TRAINER_CUDA_EMULATED)
#define TRAINER_DEVICE_CODE 1
#endif

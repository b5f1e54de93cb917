#pragma once
// HD marks a function that runs on the host and, under nvcc, on the device too.

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#else
#define HD __attribute__((always_inline)) inline
#endif

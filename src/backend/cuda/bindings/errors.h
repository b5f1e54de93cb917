#pragma once
// What CUDA and its libraries return, as Error. `what` says what was being done, as it goes on
// behind "while": "copying numbers to the GPU (cudaMemcpyAsync)".

#include <cstddef>
#include <string>

namespace trainer::cuda {

// Throws what `status`, a cudaError_t other than kSuccess, means for the user:
//   kResource     no memory: how much is free;
//   kUnavailable  no driver, no such GPU, busy, no kernels for it; or the GPU is lost: what failed
//                 is then thrown again by all that fails later on that GPU;
//   kInternal     all else.
[[noreturn]] void Fail(int status, const std::string& what);
// The same where `bytes` of memory of the GPU were asked for.
[[noreturn]] void FailToAllocate(int status, size_t bytes);

inline void Check(int status, const char* what) {
  if (status != 0) Fail(status, what);
}

// Results of cuBLASLt and cuDNN.
[[noreturn]] void FailCublasLt(int status, const char* what);
[[noreturn]] void FailCudnn(int status, const char* what);
inline void CheckCublasLt(int status, const char* what) {
  if (status != 0) FailCublasLt(status, what);
}
inline void CheckCudnn(int status, const char* what) {
  if (status != 0) FailCudnn(status, what);
}

// Why there is no GPU, where CUDA answers so to the first question: one sentence with what to do.
std::string WhyNoGpu(int status);

// "GPU 0 (NVIDIA H200)", or "GPU 0" where its name cannot be had.
std::string GpuName(int id);

// GPU `id` works and is going to be used.
void BeginUse(int id, const std::string& name);

}  // namespace trainer::cuda

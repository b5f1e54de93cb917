#pragma once
// Converts results of CUDA and its libraries to Error. `what` names the operation and completes a
// sentence after "while": "copying numbers to the GPU (cudaMemcpyAsync)".

#include <cstddef>
#include <string>

namespace trainer::cuda {

// Throws the Error for `status`, a cudaError_t other than kSuccess:
//   kResource     out of memory; says how much is free;
//   kUnavailable  no driver, no such GPU, GPU busy, no kernels for it, or the GPU is lost. A lost
//                 GPU's first error is thrown again by all later failures on that GPU;
//   kInternal     everything else.
[[noreturn]] void Fail(int status, const std::string& what);
// Throws the Error for a failed allocation of `bytes` of GPU memory.
[[noreturn]] void FailToAllocate(int status, size_t bytes);

// Calls Fail unless `status` is kSuccess.
inline void Check(int status, const char* what) {
  if (status != 0) Fail(status, what);
}

// Throw the Error for a result of cuBLASLt or cuDNN.
[[noreturn]] void FailCublasLt(int status, const char* what);
[[noreturn]] void FailCudnn(int status, const char* what);
// Calls FailCublasLt unless `status` is success.
inline void CheckCublasLt(int status, const char* what) {
  if (status != 0) FailCublasLt(status, what);
}
// Calls FailCudnn unless `status` is success.
inline void CheckCudnn(int status, const char* what) {
  if (status != 0) FailCudnn(status, what);
}

// Returns one sentence that explains why the first CUDA call failed with `status`, so that the
// program cannot use a GPU, and what the user can do.
std::string WhyNoGpu(int status);

// "GPU 0 (NVIDIA H200)", or "GPU 0" if the name is not available.
std::string GpuName(int id);

// Records the name of GPU `id`, which works and will be used, and clears its lost state.
void BeginUse(int id, const std::string& name);

}  // namespace trainer::cuda

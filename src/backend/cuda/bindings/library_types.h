#pragma once
// The libraries' values for our storage types.

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/tensor/dtype.h"

namespace trainer::cuda {

// Returns the cudaDataType for cuBLASLt.
inline int CudaTypeOf(DType type) {
  switch (type) {
    case DType::kF32:
      return cublas_lt::kReal32F;
    case DType::kBF16:
      return cublas_lt::kReal16BF;
    case DType::kF16:
      return cublas_lt::kReal16F;
  }
  return -1;
}

// Returns the cudnnDataType_t.
inline int CudnnTypeOf(DType type) {
  switch (type) {
    case DType::kF32:
      return cudnn::kDataFloat;
    case DType::kBF16:
      return cudnn::kDataBFloat16;
    case DType::kF16:
      return cudnn::kDataHalf;
  }
  return -1;
}

// Both libraries read whole vectors of 16 bytes.
inline constexpr uintptr_t kVectorBytes = 16;
// Returns whether both libraries can read whole vectors from an address.
inline bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kVectorBytes == 0;
}

// cuBLASLt needs its workspace at a multiple of this, the alignment of cudaMalloc. For cuDNN only
// this alignment is known to work.
inline constexpr size_t kWorkspaceAlign = 256;
// Returns the bytes to request so that memory aligned to kMemoryAlign has room for an aligned
// workspace.
inline size_t WorkspaceRoom(size_t bytes) {
  return bytes == 0 ? 0 : bytes + kWorkspaceAlign - kMemoryAlign;
}
// Returns the aligned workspace in memory of WorkspaceRoom bytes.
inline std::byte* WorkspaceIn(std::byte* room) {
  return room + -reinterpret_cast<uintptr_t>(room) % kWorkspaceAlign;
}

}  // namespace trainer::cuda

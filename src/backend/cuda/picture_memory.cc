#include "cuda/picture_memory.h"

#include "cuda/errors.h"
#include "cuda/runtime.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cuda {

void* PictureMemory::do_allocate(size_t bytes, size_t) {
  UseGpu(gpu_);
  void* memory = nullptr;
  const int status = GetRuntime()->Malloc(&memory, bytes);
  if (status == kErrorMemoryAllocation) {
    GetRuntime()->GetLastError();
    throw Error(ErrorCode::kResource,
                Join(GpuName(gpu_), " has no ", (bytes + (1 << 20) - 1) >> 20, " MiB (", bytes,
                     " bytes) of memory left for pictures that it decodes; lower batch_size or "
                     "data_param's prefetch, or decode on the host: --nogpu_decode"));
  }
  Check(status, "allocating memory for pictures (cudaMalloc)");
  return memory;
}

// A lost GPU refuses it.
void PictureMemory::do_deallocate(void* memory, size_t, size_t) {
  GetRuntime()->SetDevice(gpu_);
  GetRuntime()->Free(memory);
}

}  // namespace trainer::cuda

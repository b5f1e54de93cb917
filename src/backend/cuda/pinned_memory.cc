#include "cuda/pinned_memory.h"

#include "cuda/bindings/errors.h"
#include "cuda/bindings/runtime.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

constexpr size_t kPage = 4096;

// Allocates page-locked memory. Throws kResource if there is not enough.
std::byte* NewBlock(int gpu, size_t bytes) {
  UseGpu(gpu);
  void* memory = nullptr;
  const int status = GetRuntime()->HostAlloc(&memory, bytes, kHostAllocPortable);
  if (status == kErrorMemoryAllocation) {
    GetRuntime()->GetLastError();
    throw Error(
        ErrorCode::kResource,
        Join(
            "cannot allocate ", bytes >> 20, " MiB of page-locked host memory (", bytes,
            " bytes) for copies to the GPU; lower batch_size or prefetch, or request more memory"));
  }
  Check(status, "allocating page-locked host memory (cudaHostAlloc)");
  return static_cast<std::byte*>(memory);
}

}  // namespace

PinnedMemoryResource::~PinnedMemoryResource() {
  for (const auto& [bytes, block] : free_) GetRuntime()->FreeHost(block);
  for (const auto& [block, bytes] : used_) GetRuntime()->FreeHost(block);
}

bool PinnedMemoryResource::Holds(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  auto block = used_.upper_bound(const_cast<std::byte*>(at));
  if (block == used_.begin()) return false;
  --block;
  return at < block->first + block->second;
}

// Reuses a returned block, which may be up to twice as large as requested, or allocates a new one.
void* PinnedMemoryResource::do_allocate(size_t bytes, size_t) {
  const size_t size = (bytes + kPage - 1) / kPage * kPage + (bytes == 0 ? kPage : 0);
  const std::lock_guard lock(mutex_);
  const auto kept = free_.lower_bound({size, nullptr});
  if (kept != free_.end() && kept->first <= 2 * size) {
    std::byte* block = kept->second;
    used_.emplace(block, kept->first);
    free_.erase(kept);
    return block;
  }
  std::byte* block = NewBlock(gpu_, size);
  used_.emplace(block, size);
  return block;
}

// Keeps the block for reuse.
void PinnedMemoryResource::do_deallocate(void* memory, size_t, size_t) {
  const std::lock_guard lock(mutex_);
  const auto block = used_.find(static_cast<std::byte*>(memory));
  free_.emplace(block->second, block->first);
  used_.erase(block);
}

}  // namespace trainer::cuda

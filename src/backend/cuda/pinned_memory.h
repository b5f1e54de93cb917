#pragma once

#include <map>
#include <memory_resource>
#include <mutex>
#include <set>

namespace trainer::cuda {

// Page-locked host memory, which a GPU copies from without the CPU. Allocating it takes
// milliseconds and stalls the GPU, so returned blocks are kept for reuse and freed with this
// object. Thread-safe.
class PinnedMemoryResource final : public std::pmr::memory_resource {
 public:
  explicit PinnedMemoryResource(int gpu) : gpu_(gpu) {}
  ~PinnedMemoryResource() override;

  // Returns whether `memory` is within a block in use.
  bool Holds(const void* memory) const;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int gpu_;
  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> used_;             // block -> size in bytes
  std::set<std::pair<size_t, std::byte*>> free_;  // ordered by size
};

}  // namespace trainer::cuda

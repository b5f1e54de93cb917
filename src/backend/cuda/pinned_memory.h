#pragma once

#include <map>
#include <memory_resource>
#include <mutex>
#include <set>

namespace trainer::cuda {

// Page-locked memory of the host, which a GPU copies from by itself. Getting it from the system
// takes milliseconds and stops the GPU, so blocks that come back are kept and given out again, and
// end with their owner. Any thread.
class PinnedMemoryResource final : public std::pmr::memory_resource {
 public:
  explicit PinnedMemoryResource(int gpu) : gpu_(gpu) {}
  ~PinnedMemoryResource() override;

  // Whether `memory` lies in a block that is given out.
  bool Holds(const void* memory) const;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int gpu_;
  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> used_;             // block -> its bytes
  std::set<std::pair<size_t, std::byte*>> free_;  // by size
};

}  // namespace trainer::cuda

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory_resource>

namespace trainer::cuda {

// Memory of a GPU for pictures, which the host cannot touch. Any thread.
class PictureMemory final : public std::pmr::memory_resource {
 public:
  explicit PictureMemory(int gpu) : gpu_(gpu) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int gpu_;
};

// A block of any memory that gets larger, and loses what is in it, when more is wanted.
class GrowingBlock {
 public:
  explicit GrowingBlock(std::pmr::memory_resource& memory) : memory_(memory) {}
  ~GrowingBlock() { GiveBack(); }
  GrowingBlock(const GrowingBlock&) = delete;
  GrowingBlock& operator=(const GrowingBlock&) = delete;

  void Reserve(size_t bytes) {
    if (bytes <= bytes_) return;
    GiveBack();
    const size_t size = std::bit_ceil(std::max(bytes, kFirst));
    data_ = static_cast<uint8_t*>(memory_.allocate(size));
    bytes_ = size;
  }
  uint8_t* data() const { return data_; }

 private:
  static constexpr size_t kFirst = size_t{1} << 16;

  void GiveBack() {
    if (data_ != nullptr) memory_.deallocate(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  std::pmr::memory_resource& memory_;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace trainer::cuda

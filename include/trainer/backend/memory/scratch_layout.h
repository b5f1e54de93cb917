#pragma once
// Places several arrays in one block of memory, such as a layer's workspace or scratch.

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainer {

// Arrays start at multiples of this: the size of a cache line, which satisfies every device.
inline constexpr size_t kMemoryAlign = 64;

// Rounds up to a multiple of kMemoryAlign.
inline size_t AlignedBytes(size_t bytes) {
  return (bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign;
}

// Offset of an array of T in the memory that a ScratchLayout describes.
template <class T>
struct ScratchRegion {
  size_t offset = 0;

  // Returns the array. `memory` starts at a multiple of kMemoryAlign and has at least the layout's
  // Bytes().
  T* At(std::span<std::byte> memory) const { return reinterpret_cast<T*>(memory.data() + offset); }
};

// Collects arrays with Add, in any order; Bytes() is the size to request. A default layout is
// empty.
class ScratchLayout {
 public:
  // Adds an array of `count` elements after the others.
  template <class T>
  ScratchRegion<T> Add(int64_t count) {
    const ScratchRegion<T> slot{bytes_};
    bytes_ += AlignedBytes(static_cast<size_t>(count) * sizeof(T));
    return slot;
  }
  ScratchRegion<std::byte> AddBytes(size_t bytes) {
    return Add<std::byte>(static_cast<int64_t>(bytes));
  }

  size_t Bytes() const { return bytes_; }
  // The memory after the arrays, which primitives use as scratch.
  std::span<std::byte> Tail(std::span<std::byte> memory) const { return memory.subspan(bytes_); }

 private:
  size_t bytes_ = 0;
};

}  // namespace trainer

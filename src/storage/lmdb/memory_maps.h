#pragma once
// Reads /proc/self/maps, the memory mappings of this process.

#include <cstddef>
#include <cstdint>

namespace trainer {

struct MemoryMap {
  uintptr_t start = 0, end = 0;
  uint64_t offset = 0;    // of `start` in the file, in bytes
  const char* file = "";  // path as the kernel prints it; "" for anonymous memory
};

// Iterates over the mappings by address. Allocates nothing, so a signal handler may use it.
class MemoryMaps {
 public:
  MemoryMaps();
  ~MemoryMaps();
  MemoryMaps(const MemoryMaps&) = delete;
  MemoryMaps& operator=(const MemoryMaps&) = delete;

  // Returns false after the last mapping. `map->file` is valid until the next call.
  bool Next(MemoryMap* map);

 private:
  int file_;
  char text_[8192];  // a line holds a path of at most 4,096 bytes
  size_t line_ = 0, end_ = 0;
};

}  // namespace trainer

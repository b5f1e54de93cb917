#pragma once
// What is mapped into this process, as /proc/self/maps tells.

#include <cstddef>
#include <cstdint>

namespace trainer {

struct MemoryMap {
  uintptr_t start = 0, end = 0;
  uint64_t offset = 0;    // in the file, of the start
  const char* file = "";  // as the system names it; "" for memory
};

// Gives the maps of this process one after the other, by address; none where there is no /proc.
// Allocates nothing, so that a signal handler may use it.
class MemoryMaps {
 public:
  MemoryMaps();
  ~MemoryMaps();
  MemoryMaps(const MemoryMaps&) = delete;
  MemoryMaps& operator=(const MemoryMaps&) = delete;

  // False after the last map. `map->file` is valid until the next call.
  bool Next(MemoryMap* map);

 private:
  int file_;
  char text_[8192];  // a line has a path of 4,096 bytes at most
  size_t line_ = 0, end_ = 0;
};

}  // namespace trainer

#pragma once
// What is mapped into this process, as /proc/self/maps tells.

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

struct MemoryMap {
  uintptr_t start = 0, end = 0;
  uint64_t offset = 0;  // in the file
  std::string file;     // "" for memory; as the system names it
};

// By address; none where there is no /proc.
std::vector<MemoryMap> ListMemoryMaps();

}  // namespace trainer

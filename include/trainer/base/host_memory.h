#pragma once
// How much memory a process may take on this machine.

#include <cstdint>
#include <string>

namespace trainer {

struct HostMemory {
  uint64_t total = 0;      // bytes that this process can have at most
  uint64_t available = 0;  // bytes that it can take now without pushing out others
  std::string limit;  // what sets `total`: "the machine", "the control group /job", "ulimit -v"
};

// The least of: the machine's memory, the limits of the process's control groups (versions 1 and 2,
// the groups above it too), and the limit of its address space. Pages of files that the system can
// drop count as available. `root` is put before /proc and /sys, for tests. What cannot be read sets
// no limit; without any, both figures are 0.
HostMemory ReadHostMemory(const std::string& root = "");

}  // namespace trainer

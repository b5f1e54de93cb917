#pragma once
// How much memory a process may take on this machine.

#include <cstdint>
#include <string>

namespace trainer {

struct HostMemory {
  uint64_t total = 0;      // bytes that this process can have at most
  uint64_t available = 0;  // bytes that it can take now without pushing out others
  // The limit that determines `total`: "the machine", "the control group /job",
  // "SLURM_MEM_PER_NODE", "ulimit -v"; a limit that several ranks share begins with "each of 2
  // ranks' part of ..."
  std::string limit;
};

// Returns the least of: the machine's memory, the limits of the process's control groups (versions
// 1 and 2, and of the groups above it), the memory that Slurm gave the job on this machine, and the
// limit of the address space. Pages of files that the system can drop count as available. `root` is
// put before /proc and /sys, for tests. A value that cannot be read sets no limit; if there is
// none, both figures are 0.
HostMemory ReadHostMemory(const std::string& root = "");

// States that `ranks` processes of this machine share all of these limits but the address space, in
// equal parts. From then on ReadHostMemory returns one part.
void ShareMemory(int ranks);

}  // namespace trainer

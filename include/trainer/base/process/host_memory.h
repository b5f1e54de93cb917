#pragma once
// How much memory a process may take on this machine.

#include <cstdint>
#include <string>

namespace trainer {

struct HostMemory {
  uint64_t total = 0;      // bytes that this process can have at most
  uint64_t available = 0;  // bytes that it can take now without pushing out others
  // What sets `total`: "the machine", "the control group /job", "SLURM_MEM_PER_NODE", "ulimit -v";
  // of one that several share, "each of 2 ranks' part of ..."
  std::string limit;
};

// The least of: the machine's memory, the limits of the process's control groups (versions 1 and 2,
// the groups above it too), what Slurm gave the job on this machine, and the limit of the address
// space. Pages of files that the system can drop count as available. `root` is put before /proc and
// /sys, for tests. What cannot be read sets no limit; without any, both figures are 0.
HostMemory ReadHostMemory(const std::string& root = "");

// `ranks` processes of this machine share all of these but the address space: each has its part.
// From then on ReadHostMemory counts that alone.
void ShareMemory(int ranks);

}  // namespace trainer

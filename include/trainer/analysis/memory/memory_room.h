#pragma once
// The memory that a run may use: of this process, of a GPU of this machine or of another one.

#include <cstddef>
#include <optional>
#include <string>

#include "trainer/backend/device/device.h"

namespace trainer {

// The memory of a host or a GPU that a run may use.
struct MemoryRoom {
  bool gpu = false;        // memory of a GPU, not of the host
  bool estimated = false;  // of a GPU that is not there: its libraries' memory is an estimate
  size_t bytes = 0;        // 0: no limit
  std::string name;        // "16.0 GiB", "GPU 0, with 79.1 GiB free"
};

// Returns unlimited memory of the kind that a run on `device` uses, for counting what the run holds
// there.
MemoryRoom UnlimitedRoom(const Device& device);

// Returns the memory that a run on the CPU may use. `limit`: "" for the memory that this process
// may use, "none" for no limit, or a size such as "64GiB" for another machine. Throws kUsage, which
// names --limit, for any other text.
MemoryRoom ResolveHostRoom(const std::string& limit);
// Returns the free memory of a GPU of this machine, whose number is `id`.
MemoryRoom ResolveGpuRoom(const Device& device, int id);
// Returns the memory of a GPU that this machine does not have. `size`: "" for no limit, or a size
// such as "16GiB". Throws kUsage, which names --gpu, for any other text.
MemoryRoom ResolvePlannedGpuRoom(const std::string& size);

// Returns the bytes that `text`, the value of --memory, allows a run: a size such as "8GiB", or
// "auto" for FindAvailableMemory(device). No value for "" and for the names of memory modes. Throws
// kUsage for any other text.
std::optional<size_t> ParseMemoryLimit(const std::string& text, const Device& device);

}  // namespace trainer

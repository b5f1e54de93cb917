#pragma once
// The memory of a device that this process may use.

#include <cstddef>
#include <string>

#include "trainer/backend/device/device.h"

namespace trainer {

struct AvailableMemory {
  size_t bytes = 0;
  std::string limit;  // what sets it: "the device (CPU, 8 threads)", "the control group /job"
};

// On a GPU the memory that is free now. On the CPU the least of the machine's memory and of the
// limits of a queue, a container or a shell, because the system ends a process that takes more.
AvailableMemory FindAvailableMemory(const Device& device);

}  // namespace trainer

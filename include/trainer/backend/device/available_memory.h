#pragma once
// How much memory of a device this process may use.

#include <cstddef>
#include <string>

#include "trainer/backend/device/device.h"

namespace trainer {

struct AvailableMemory {
  size_t bytes = 0;
  // what sets the limit: "the device (CPU, 8 threads)", "the control group /job"
  std::string limit;
};

// On a GPU, returns the memory that is free now. On the CPU, returns the smallest of the machine's
// memory and the limits of the batch queue, container and shell, because the system kills a process
// that exceeds any of them.
AvailableMemory FindAvailableMemory(const Device& device);

}  // namespace trainer

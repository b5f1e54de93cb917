#pragma once

#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// Creates the CPU device with `threads` threads (AvailableThreads() if 0). Sets the size of the
// process's OpenMP team.
std::unique_ptr<Device> MakeCpuDevice(int threads = 0);

}  // namespace trainer

#pragma once
// The load of a GPU, as its driver reports it during a run.

#include <memory>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/process/gpu_reading.h"

namespace trainer {

// Creates a monitor for a device made by MakeGpuDevice; the monitor may outlive the device. Returns
// null and sets `*why` to a sentence if the driver's library (NVML, libnvidia-ml.so.1) is missing
// or does not know the GPU.
std::unique_ptr<GpuMonitor> MakeGpuMonitor(const Device& device, std::string* why);

}  // namespace trainer

#pragma once
// What the driver of a GPU tells of it while it works.

#include <memory>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/process/gpu_reading.h"

namespace trainer {

// Of a device that MakeGpuDevice made; may outlive it. Null where the driver's library (NVML,
// libnvidia-ml.so.1) is not there or does not know the GPU: `*why` is a sentence.
std::unique_ptr<GpuMonitor> MakeGpuMonitor(const Device& device, std::string* why);

}  // namespace trainer

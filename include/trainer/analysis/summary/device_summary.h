#pragma once
// The processor, GPUs and libraries of the machine.

#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/json.h"

namespace trainer {

// `support` lists the GPUs to show.
std::string DeviceText(const Device& cpu, const GpuSupport& support);
Json DeviceJson(const Device& cpu, const GpuSupport& support);

}  // namespace trainer

#pragma once
// The processor, GPUs and libraries of the machine.

#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/json.h"

namespace trainer {

// Returns the processor, memory, libraries and GPUs of this machine, with a line for each fact.
// `support` lists the GPUs and what CUDA lacks.
std::string DeviceText(const Device& cpu, const GpuSupport& support);
// Returns the same facts for programs.
Json DeviceJson(const Device& cpu, const GpuSupport& support);

}  // namespace trainer

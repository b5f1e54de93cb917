#pragma once

#include <string>

#include "trainer/backend/device/gpu.h"

namespace trainer::cuda {

// Makes GPU `id` the current device of the calling thread and creates its context. Throws
// kUnavailable if it cannot be used: no driver, no such GPU (the message lists the GPUs), too old,
// or in use.
GpuInfo GpuForUse(int id);

// Returns "NVIDIA H200, 139 GiB, compute 9.0".
std::string DescribeGpu(const GpuInfo& gpu);

}  // namespace trainer::cuda

#pragma once

#include <string>

#include "trainer/backend/device/gpu.h"

namespace trainer::cuda {

// GPU `id`, which is the calling thread's from now on and has a context. Throws kUnavailable where
// it cannot be used: no driver, no such GPU and which there are, too old, in use.
GpuInfo GpuForUse(int id);

// "NVIDIA H200, 139 GiB, compute 9.0"
std::string DescribeGpu(const GpuInfo& gpu);

}  // namespace trainer::cuda

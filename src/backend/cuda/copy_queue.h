#pragma once

#include <memory>

#include "trainer/backend/device.h"

namespace trainer::cuda {

class CudaDevice;

std::unique_ptr<CopyQueue> MakeCopyStream(const CudaDevice& device);
std::unique_ptr<HostRead> MakeRead(const CudaDevice& device);

}  // namespace trainer::cuda

#pragma once

#include <memory>

#include "cuda/runtime.h"
#include "trainer/backend/device.h"

namespace trainer::cuda {

class CudaDevice;
class Mark;

std::unique_ptr<CopyQueue> MakeCopyStream(const CudaDevice& device);
std::unique_ptr<HostRead> MakeRead(const CudaDevice& device);
// Copies on `queue`, behind `mark` and before what the device is given later.
std::unique_ptr<HostRead> MakeReadAt(const CudaDevice& device, Mark& mark, Stream queue);

}  // namespace trainer::cuda

#pragma once

#include <memory>

#include "cuda/bindings/runtime.h"
#include "trainer/backend/device/device.h"

namespace trainer::cuda {

class CudaDevice;
class StreamEvent;

std::unique_ptr<CopyStream> MakeCopyStream(const CudaDevice& device);
std::unique_ptr<AsyncReadback> MakeReadback(const CudaDevice& device);
// Copies on `queue`, behind `mark` and before what the device is given later.
std::unique_ptr<AsyncReadback> NewReadbackAt(const CudaDevice& device, StreamEvent& mark,
                                             Stream queue);

}  // namespace trainer::cuda

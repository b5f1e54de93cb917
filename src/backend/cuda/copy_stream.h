#pragma once

#include <memory>

#include "cuda/bindings/runtime.h"
#include "trainer/backend/device/device.h"

namespace trainer::cuda {

class CudaDevice;
class StreamEvent;

// Implements Device::NewCopyStream.
std::unique_ptr<CopyStream> MakeCopyStream(const CudaDevice& device);
// Implements Device::NewReadback.
std::unique_ptr<AsyncReadback> MakeReadback(const CudaDevice& device);
// Copies on stream `queue` after event `mark`. Work that the device's stream gets after Start waits
// for the copy.
std::unique_ptr<AsyncReadback> NewReadbackAt(const CudaDevice& device, StreamEvent& mark,
                                             Stream queue);

}  // namespace trainer::cuda

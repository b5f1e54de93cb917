#pragma once

#include "cuda/cuda_device.h"

namespace trainer::cuda {

// As Recorder::Record: captures the device's queue as a CUDA graph.
std::unique_ptr<Recording> CaptureGraph(const CudaDevice& device,
                                        const std::function<void()>& queue);

std::unique_ptr<RecordedMark> MakeGraphMark(const CudaDevice& device);

}  // namespace trainer::cuda

#pragma once

#include "cuda/cuda_device.h"

namespace trainer::cuda {

// Implements GraphCapture::Capture: captures the device's stream as a CUDA graph.
std::unique_ptr<CapturedGraph> CaptureGraph(const CudaDevice& device,
                                            const std::function<void()>& queue);

// Implements GraphCapture::NewEvent.
std::unique_ptr<CapturedEvent> MakeGraphMark(const CudaDevice& device);

}  // namespace trainer::cuda

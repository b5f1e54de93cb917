#pragma once

#include "cuda/cuda_device.h"

namespace trainer::cuda {

// As GraphCapture::Capture: captures the device's queue as a CUDA graph.
std::unique_ptr<CapturedGraph> CaptureGraph(const CudaDevice& device,
                                            const std::function<void()>& queue);

std::unique_ptr<CapturedEvent> MakeGraphMark(const CudaDevice& device);

}  // namespace trainer::cuda

#include "batch_norm_generic.h"
#include "cuda/pixel_loops.h"
#include "cuda/plans.h"

namespace trainer::cuda {

std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const Device& device, const BatchNormDesc& desc) {
  return std::make_unique<BatchNormPasses<PixelLoops>>(desc, PixelLoops(device));
}

}  // namespace trainer::cuda

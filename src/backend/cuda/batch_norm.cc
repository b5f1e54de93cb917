#include "batch_norm_plan.h"
#include "cuda/pixel_loops.h"
#include "cuda/plans.h"

namespace trainer::cuda {

std::unique_ptr<BatchNormPlan> MakeBatchNorm(const Device& device, const BatchNormDesc& desc) {
  return std::make_unique<BatchNormPasses<PixelLoops>>(desc, PixelLoops(device));
}

}  // namespace trainer::cuda

#include "batch_norm_plan.h"
#include "cpu/loops.h"
#include "cpu/plans.h"

namespace trainer::cpu {

std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& desc) {
  return std::make_unique<BatchNormPasses<Loops>>(desc, Loops{});
}

}  // namespace trainer::cpu

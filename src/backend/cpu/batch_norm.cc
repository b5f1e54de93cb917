#include "batch_norm_generic.h"
#include "cpu/loops.h"
#include "cpu/plans.h"

namespace trainer::cpu {

std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) {
  return std::make_unique<BatchNormPasses<Loops>>(desc, Loops{});
}

}  // namespace trainer::cpu

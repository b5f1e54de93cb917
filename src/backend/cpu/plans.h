#pragma once
// The CPU's plans. Each maker returns null when it does not take the description.

#include <memory>

#include "trainer/backend/conv.h"
#include "trainer/backend/gemm.h"
#include "trainer/backend/pool.h"

namespace trainer::cpu {

// Never null: plain loops come last.
std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& desc);
std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc);
std::unique_ptr<PoolPlan> MakePool(const PoolDesc& desc);

}  // namespace trainer::cpu

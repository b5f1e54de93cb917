#pragma once
// The CPU's products and convolutions. Never null: plain loops come last.

#include <memory>

#include "trainer/backend/conv.h"
#include "trainer/backend/gemm.h"

namespace trainer::cpu {

std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& desc);
std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc);

}  // namespace trainer::cpu

#pragma once
// The CPU's plans. Never null: plain loops come last.

#include <memory>

#include "trainer/backend/batch_norm.h"
#include "trainer/backend/conv.h"
#include "trainer/backend/gemm.h"
#include "trainer/backend/lrn.h"
#include "trainer/backend/softmax.h"

namespace trainer::cpu {

std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& desc);
std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc);
std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& desc);
std::unique_ptr<LrnPlan> MakeLrn(const LrnDesc& desc);
std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& desc);

}  // namespace trainer::cpu

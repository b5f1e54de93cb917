#pragma once
// The checks that every device makes before it plans: each throws kConfig and says which number is
// wrong.

#include "trainer/backend/conv.h"
#include "trainer/backend/gemm.h"
#include "trainer/backend/pool.h"

namespace trainer {

void CheckGemm(const GemmDesc& desc);
void CheckConv(const ConvDesc& desc);
void CheckPool(const PoolDesc& desc);

}  // namespace trainer

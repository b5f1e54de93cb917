#pragma once
// The tables of the emulated libraries.

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "cuda/bindings/nccl.h"
#include "cuda/bindings/nvml.h"

namespace emulated_gpu {

const trainer::cuda::CublasLt& TheCublasLt();
const trainer::cuda::Cudnn& TheCudnn();
const trainer::cuda::Nccl& TheNccl();
const trainer::cuda::Nvml& TheNvml();

}  // namespace emulated_gpu

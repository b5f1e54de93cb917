#pragma once
// The tables of the emulated libraries.

#include "cuda/cublas_lt.h"
#include "cuda/cudnn.h"
#include "cuda/nccl.h"
#include "cuda/nvml.h"

namespace emulated_gpu {

const trainer::cuda::CublasLt& TheCublasLt();
const trainer::cuda::Cudnn& TheCudnn();
const trainer::cuda::Nccl& TheNccl();
const trainer::cuda::Nvml& TheNvml();

}  // namespace emulated_gpu

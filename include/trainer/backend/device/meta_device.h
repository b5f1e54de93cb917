#pragma once
// A GPU that is not there, for asking what a net would take on one.

#include <cstddef>
#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// What a run holds on a GPU beside its own arrays: the driver's context, the loaded kernels and
// cuBLASLt's workspace. An estimate.
inline constexpr size_t kGpuContextBytes = size_t{640} << 20;

// Its plans say how much memory they would ask for: exactly where the kernels are this program's,
// an estimate where they are the libraries'. All that would compute or copy
// throws kInternal, so that a net can only be compiled for it, or built with
// NetOptions::plan_only.
std::unique_ptr<Device> MakeMetaDevice();

}  // namespace trainer

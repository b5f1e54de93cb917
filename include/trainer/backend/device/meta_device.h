#pragma once
// A simulated GPU that reports how much memory a net would need on a real one.

#include <cstddef>
#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// Estimated GPU memory of a run in addition to its own arrays: the driver's context, the loaded
// kernels and cuBLASLt's workspace.
inline constexpr size_t kGpuContextBytes = size_t{640} << 20;

// Its plans say how much memory they would ask for: exactly where the kernels are this program's,
// an estimate where they are the libraries'. All that would compute or copy
// throws kInternal, so that a net can only be compiled for it.
std::unique_ptr<Device> MakeMetaDevice();

}  // namespace trainer

#pragma once
// A simulated GPU that reports how much memory a net would need on a real one.

#include <cstddef>
#include <memory>

#include "trainer/backend/device/device.h"

namespace trainer {

// Estimated GPU memory of a run in addition to its own arrays: the driver's context, the loaded
// kernels and cuBLASLt's workspace.
inline constexpr size_t kGpuContextBytes = size_t{640} << 20;

// Creates the simulated device. Its primitives report how much memory they would need: exactly for
// this program's own kernels, as an estimate for library kernels. All calls that would compute or
// copy throw kInternal, so a net must be built with NetOptions::plan_only.
std::unique_ptr<Device> MakeMetaDevice();

}  // namespace trainer

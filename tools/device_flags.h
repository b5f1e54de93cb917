#pragma once
// Which device a verb computes on. The only file that makes one.

#include <memory>

#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// --gpu, of the verbs that compute.
Flag GpuFlag();

// What a command asks for. This build computes on the CPU only, with as many threads as the
// process may use.
struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
};

// Throws kUsage for a --gpu that is neither "all" nor a list of numbers, and kUnavailable for one
// that is.
DeviceChoice ChooseDevice(const Flags& flags);
// The same with a solver, whose solver_mode may ask for a GPU: kUnavailable, at its line. One
// without solver_mode trains on the CPU, as with Caffe's program, and device_id counts for GPUs
// only.
DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec);

// Without a choice the device of verbs that compute nothing and only plan.
std::unique_ptr<Device> MakeDevice(const DeviceChoice& choice = {});
// Caffe's line, "Use CPU."
void LogDevice(const DeviceChoice& choice);

}  // namespace trainer

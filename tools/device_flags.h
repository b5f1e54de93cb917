#pragma once
// The flags of verbs that compute on a device.

#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/run/device.h"

namespace trainer {

// The flags of a verb that computes: `flags`, --gpu, --tf32, --deterministic and --gpu_cache.
std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags);

DeviceOptions DeviceOptionsOf(const Flags& flags);

// The same as the functions of run/device.h, for verbs that still read Flags.
inline DeviceChoice ChooseDevice(const Flags& flags) {
  return ChooseDevice(DeviceOptionsOf(flags));
}
inline DeviceChoice ChooseDevice(const Flags& flags, const NetSpec& net) {
  return ChooseDevice(DeviceOptionsOf(flags), net);
}
inline DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec,
                                 const LocalRank& rank = {}) {
  return ChooseDevice(DeviceOptionsOf(flags), spec, rank);
}
// Of verbs that have --gpu without the other flags of a device, as well.
inline std::optional<int> GpuOf(const Flags& flags) {
  return RequestedGpu({.gpu = flags.Text("gpu")});
}

}  // namespace trainer

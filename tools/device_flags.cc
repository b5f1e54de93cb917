#include "device_flags.h"

#include "flag_groups.h"

namespace trainer {

std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags) {
  static DeviceOptions unused;
  static FlagSet set("");
  if (set.flags().empty()) DeclareDevice(set, &unused);
  flags.insert(flags.end(), set.flags().begin(), set.flags().end());
  return flags;
}

DeviceOptions DeviceOptionsOf(const Flags& flags) {
  DeviceOptions options;
  options.gpu = flags.Text("gpu");
  if (flags.Has("tf32")) options.tf32 = flags.Switch("tf32");
  options.deterministic = flags.Switch("deterministic");
  options.gpu_cache = flags.Text("gpu_cache");
  return options;
}

}  // namespace trainer

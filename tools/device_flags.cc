#include "device_flags.h"

namespace trainer {
namespace {

Flag GpuFlag() {
  return {.name = "gpu",
          .value = "ID",
          .help =
              "compute on this GPU, such as 0; all: the only GPU. 'train' accepts several (0,1 or "
              "all) and starts one rank per GPU"};
}

Flag Tf32Flag() {
  return {.name = "tf32",
          .kind = FlagKind::kSwitch,
          .help =
              "use TF32 for f32 matrix products and convolutions (10-bit mantissa): faster on "
              "Ampere and newer GPUs"};
}

Flag DeterministicFlag() {
  return {.name = "deterministic",
          .kind = FlagKind::kSwitch,
          .help = "give bit-identical results in every run on a GPU; may be slower"};
}

Flag GpuCacheFlag() {
  return {.name = "gpu_cache",
          .value = "FILE|off",
          .help =
              "file that stores the fastest measured convolution algorithms for later runs and "
              "other processes (default: trainer/convolutions in your cache folder); off: measure "
              "again in each process"};
}

}  // namespace

std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags) {
  AddFlags("device and memory", {GpuFlag(), Tf32Flag(), DeterministicFlag(), GpuCacheFlag()},
           &flags);
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

#include <iostream>
#include <optional>

#include "flag_groups.h"
#include "trainer/analysis/summary/device_summary.h"
#include "trainer/cli/verb.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Returns the GPUs of the machine, or the one that --gpu names. Throws if it cannot be used.
GpuSupport SupportOf(const std::optional<int>& gpu) {
  GpuSupport support = FindGpus();
  if (!gpu) return support;
  std::erase_if(support.gpus, [&](const GpuInfo& info) { return info.id != *gpu; });
  if (support.gpus.empty())
    MakeGpuDevice({.id = *gpu});  // its error names the GPUs that can be used
  return support;
}

// Prints the CPU and the GPUs that this build can use.
class DeviceQuery final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&device_.gpu, "gpu", "ID",
               "show this GPU only; exits with code 69 if it cannot be used");
    DeclareJson(flags, &json_);
  }

  int Run() override {
    const GpuSupport support = SupportOf(RequestedGpu(device_));
    const std::unique_ptr<Device> cpu = MakeDevice();
    if (json_) {
      std::cout << DeviceJson(*cpu, support).ToString();
    } else {
      std::cout << DeviceText(*cpu, support);
    }
    return 0;
  }

 private:
  DeviceOptions device_;
  bool json_ = false;
};

const RegisterVerb<DeviceQuery> kDeviceQuery("device_query");

}  // namespace
}  // namespace trainer

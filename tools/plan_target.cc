#include "plan_target.h"

#include "trainer/backend/device/meta_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

constexpr char kAnyGpu[] = "any";  // --gpu without a value

// Returns whether --gpu names GPUs of this machine ("0", "0,1", "all") rather than a size.
bool IsGpuNumber(const std::string& text) {
  return text == "all" || text.find_first_not_of("0123456789,") == std::string::npos;
}

}  // namespace

void DeclarePlanTarget(FlagSet& flags, PlanTargetFlags* target) {
  flags
      .Bind(&target->gpu, "gpu", "SIZE|ID",
            "plan for a GPU: one with this memory, such as 16GiB, or a GPU of this machine, such "
            "as 0; without a value, this machine needs no GPU")
      .IfBare(kAnyGpu);
  flags.Bind(&target->limit, "limit", "SIZE",
             "memory limit of a run on the CPU, such as 64GiB for another machine; none: no "
             "limit. Default: the memory that this process may use, by the machine, its control "
             "groups, the Slurm job and ulimit -v");
}

PlanTarget ResolvePlanTarget(const PlanTargetFlags& flags) {
  if (flags.gpu.empty()) return {MakeDevice(), ResolveHostRoom(flags.limit)};
  if (!flags.limit.empty()) {
    throw Error(ErrorCode::kUsage,
                "--limit is for the CPU; give the memory of a GPU with --gpu=16GiB");
  }
  if (!IsGpuNumber(flags.gpu)) {
    return {MakeMetaDevice(), ResolvePlannedGpuRoom(flags.gpu == kAnyGpu ? "" : flags.gpu)};
  }
  DeviceChoice choice;
  choice.kind = DeviceKind::kCuda;
  choice.flag = Join("--gpu=", flags.gpu);
  DeviceOptions device;
  device.gpu = flags.gpu;
  choice.gpu.id = RequestedGpu(device).value_or(0);
  PlanTarget target = {MakeDevice(choice), {}};
  target.room = ResolveGpuRoom(*target.device, choice.gpu.id);
  return target;
}

}  // namespace trainer

#include "device_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

Flag Tf32Flag() {
  return {.name = "tf32",
          .kind = FlagKind::kSwitch,
          .help =
              "round what f32 products multiply to 10 bits of fraction: faster on GPUs since "
              "Ampere"};
}

Flag DeterministicFlag() {
  return {.name = "deterministic",
          .kind = FlagKind::kSwitch,
          .help = "repeat bit for bit on a GPU too, perhaps slower"};
}

bool IsGpuNumber(const std::string& id) {
  return id.size() <= 4 &&
         std::ranges::all_of(id, [](unsigned char c) { return std::isdigit(c) != 0; });
}

[[noreturn]] void RefuseSeveral(const std::string& flag) {
  throw Error(ErrorCode::kUnavailable,
              flag + ": a run computes on one GPU; name one, such as --gpu=0");
}

// The GPU that --gpu=all stands for. Where there is none, MakeDevice says why.
int OnlyGpu(const std::string& flag) {
  const std::vector<GpuInfo> gpus = FindGpus().gpus;
  if (gpus.size() > 1) RefuseSeveral(flag);
  return gpus.empty() ? 0 : gpus[0].id;
}

void TakeMath(const Flags& flags, const NetSpec* net, DeviceChoice* choice) {
  if (flags.Has("tf32") || choice->kind == DeviceKind::kCpu || net == nullptr) return;
  const int math = net->proto.default_cudnn_math_override();
  if (math < 0) return;
  choice->gpu.tf32 = math == 1;
  choice->notes.push_back(Join(net->Where("default_cudnn_math_override").ToString(),
                               ": default_cudnn_math_override: ", math, " is taken as --",
                               math == 1 ? "" : "no", "tf32"));
}

// Why the GPU is not there, behind who asked for it.
[[noreturn]] void Refuse(const DeviceChoice& choice, const Error& error) {
  if (error.code() != ErrorCode::kUnavailable) throw error;
  if (!choice.flag.empty()) {
    throw Error(error.code(),
                Join(choice.flag, ": ", error.what(), "; without --gpu the CPU computes"));
  }
  throw Error(error.code(), choice.where,
              Join("solver_mode is GPU: ", error.what(),
                   "; for the CPU write solver_mode: CPU, or give --set solver_mode=CPU"));
}

}  // namespace

std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags) {
  for (const Flag& flag : {GpuFlag(), Tf32Flag(), DeterministicFlag()}) flags.push_back(flag);
  return flags;
}

Flag GpuFlag() {
  return {.name = "gpu",
          .value = "ID",
          .help = "compute on this GPU: 0, or all where there is only one"};
}

std::optional<int> GpuOf(const Flags& flags) {
  if (!flags.Has("gpu")) return std::nullopt;
  const std::string& text = flags.Text("gpu");
  const std::string flag = "--gpu=" + text;
  if (text == "all") return OnlyGpu(flag);
  const std::vector<std::string> ids = flags.List("gpu");
  if (ids.empty() || !std::ranges::all_of(ids, IsGpuNumber)) {
    throw Error(ErrorCode::kUsage, flag + ": give the number of a GPU, such as 0, or all");
  }
  if (ids.size() > 1) RefuseSeveral(flag);
  return std::stoi(ids[0]);
}

DeviceChoice ChooseDevice(const Flags& flags) {
  DeviceChoice choice;
  choice.gpu.tf32 = flags.Switch("tf32");
  choice.gpu.deterministic = flags.Switch("deterministic");
  const std::optional<int> gpu = GpuOf(flags);
  if (!gpu) return choice;
  choice.kind = DeviceKind::kCuda;
  choice.gpu.id = *gpu;
  choice.flag = "--gpu=" + flags.Text("gpu");
  return choice;
}

DeviceChoice ChooseDevice(const Flags& flags, const NetSpec& net) {
  DeviceChoice choice = ChooseDevice(flags);
  TakeMath(flags, &net, &choice);
  return choice;
}

DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec) {
  DeviceChoice choice = ChooseDevice(flags);
  const bool asks =
      spec.proto.has_solver_mode() && spec.proto.solver_mode() == caffe::SolverParameter::GPU;
  if (choice.kind == DeviceKind::kCpu && asks) {
    choice.kind = DeviceKind::kCuda;
    choice.gpu.id = spec.proto.device_id();
    choice.where = spec.Where("solver_mode");
    if (choice.gpu.id < 0) {
      spec.Fail("device_id", Join("device_id is ", choice.gpu.id, "; GPUs are counted from 0"));
    }
  }
  TakeMath(flags, spec.train.net, &choice);
  return choice;
}

std::unique_ptr<Device> MakeDevice(const DeviceChoice& choice) {
  if (choice.kind == DeviceKind::kCpu) return MakeCpuDevice();
  try {
    return MakeGpuDevice(choice.gpu);
  } catch (const Error& error) {
    Refuse(choice, error);
  }
}

void LogDevice(const DeviceChoice& choice, const Device& device) {
  if (choice.kind == DeviceKind::kCpu) {
    LOG(INFO) << "Use CPU.";
    if (choice.gpu.tf32) LOG(INFO) << "--tf32 has no effect on the CPU";
    return;
  }
  LOG(INFO) << "Use GPU " << choice.gpu.id << ": " << EscapeControl(device.Describe());
  for (const std::string& note : choice.notes) LOG(INFO) << EscapeControl(note);
}

std::unique_ptr<Device> MakeLoggedDevice(const DeviceChoice& choice) {
  std::unique_ptr<Device> device = MakeDevice(choice);
  LogDevice(choice, *device);
  return device;
}

}  // namespace trainer

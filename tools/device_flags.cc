#include "device_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "trainer/backend/gpu_group.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"

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

// "" where there is no folder for it.
std::string UsualGpuCache() {
  constexpr char kFile[] = "trainer/convolutions";
  const std::string cache = EnvironmentVariable("XDG_CACHE_HOME"),
                    home = EnvironmentVariable("HOME");
  if (cache.starts_with('/')) return JoinPath(cache, kFile);
  return home.starts_with('/') ? JoinPath(home, std::string(".cache/") + kFile) : "";
}

void TakeGpuCache(const Flags& flags, GpuOptions* gpu) {
  gpu->algorithm_file_asked = flags.Has("gpu_cache");
  if (!gpu->algorithm_file_asked) {
    gpu->algorithm_file = UsualGpuCache();
  } else if (flags.Text("gpu_cache") != "off") {
    gpu->algorithm_file = flags.Text("gpu_cache");
  }
}

bool IsGpuNumber(const std::string& id) {
  return id.size() <= 4 &&
         std::ranges::all_of(id, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The GPUs that --gpu=all stands for. Where there is none, MakeDevice says why.
std::vector<int> AllGpus() {
  std::vector<int> gpus(std::max<size_t>(1, ListGpus().size()));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

std::string WrittenFlag(const Flags& flags) { return "--gpu=" + flags.Text("gpu"); }

// --tf32, --deterministic and --gpu_cache, and the GPU where there is one.
DeviceChoice ChoiceOf(const Flags& flags, const std::optional<int>& gpu) {
  DeviceChoice choice;
  choice.gpu.tf32 = flags.Switch("tf32");
  choice.gpu.deterministic = flags.Switch("deterministic");
  TakeGpuCache(flags, &choice.gpu);
  if (!gpu) return choice;
  choice.kind = DeviceKind::kCuda;
  choice.gpu.id = *gpu;
  choice.flag = WrittenFlag(flags);
  return choice;
}

bool AsksForGpu(const SolverSpec& spec) {
  return spec.proto.has_solver_mode() && spec.proto.solver_mode() == caffe::SolverParameter::GPU;
}

// Which of the GPUs is that of a rank. One alone may be another one for each of them.
int GpuOfRank(const std::vector<int>& gpus, const RankOnMachine& rank, const std::string& who) {
  RequireGpusForRanks(static_cast<int>(gpus.size()), rank.count, rank.share_gpu, who);
  return gpus[static_cast<size_t>(rank.local) % gpus.size()];
}

void TakeMath(const Flags& flags, const NetSpec* net, DeviceChoice* choice) {
  if (flags.Has("tf32") || choice->kind == DeviceKind::kCpu || net == nullptr) return;
  const int math = net->proto.default_cudnn_math_override();
  if (math < 0) return;
  choice->gpu.tf32 = math == 1;
  choice->notes.push_back(Join(net->Where("default_cudnn_math_override").ToString(),
                               ": default_cudnn_math_override: ", math, " has the effect of --",
                               math == 1 ? "" : "no", "tf32"));
}

// Why the GPU is not there, behind who asked for it.
[[noreturn]] void RefuseDevice(const DeviceChoice& choice, const Error& error) {
  if (error.code() != ErrorCode::kUnavailable) throw error;
  if (!choice.flag.empty()) {
    throw Error(error.code(),
                Join(choice.flag, ": ", error.what(), "; leave out --gpu to compute on the CPU"));
  }
  throw Error(
      error.code(), choice.where,
      Join("solver_mode is GPU: ", error.what(),
           "; to compute on the CPU, write solver_mode: CPU or give --set solver_mode=CPU"));
}

// Caffe's line "Use CPU.", or "Use GPU 0: NVIDIA H200...", and the notes of the choice.
void LogDevice(const DeviceChoice& choice, const Device& device) {
  if (choice.kind == DeviceKind::kCpu) {
    LOG(INFO) << "Use CPU.";
    if (choice.gpu.tf32) LOG(INFO) << "--tf32 has no effect on the CPU";
    return;
  }
  LOG(INFO) << "Use GPU " << choice.gpu.id << ": " << EscapeControl(device.Describe());
  for (const std::string& note : choice.notes) LOG(INFO) << EscapeControl(note);
}

}  // namespace

std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags) {
  AddFlags("device and memory", {GpuFlag(), Tf32Flag(), DeterministicFlag(), GpuCacheFlag()},
           &flags);
  return flags;
}

std::optional<std::vector<int>> GpusOf(const Flags& flags) {
  if (!flags.Has("gpu")) return std::nullopt;
  if (flags.Text("gpu") == "all") return AllGpus();
  const std::vector<std::string> ids = flags.List("gpu");
  if (ids.empty() || !std::ranges::all_of(ids, IsGpuNumber)) {
    throw Error(ErrorCode::kUsage,
                WrittenFlag(flags) + ": give the number of a GPU, such as 0, or all");
  }
  std::vector<int> gpus;
  for (const std::string& id : ids) {
    if (std::ranges::find(gpus, std::stoi(id)) != gpus.end()) {
      throw Error(ErrorCode::kUsage, Join(WrittenFlag(flags), ": GPU ", id, " is named twice"));
    }
    gpus.push_back(std::stoi(id));
  }
  return gpus;
}

std::optional<int> GpuOf(const Flags& flags) {
  const std::optional<std::vector<int>> gpus = GpusOf(flags);
  if (!gpus) return std::nullopt;
  if (gpus->size() > 1) {
    throw Error(
        ErrorCode::kUnavailable,
        WrittenFlag(flags) + ": only 'train' can use several GPUs; name one, such as --gpu=0");
  }
  return gpus->front();
}

void RequireGpusForRanks(int gpus, int ranks, bool share_gpu, const std::string& who) {
  if (gpus == 1 || gpus == ranks || (share_gpu && ranks > gpus)) return;
  throw Error(ErrorCode::kUsage,
              Join(who, ": ", gpus, " GPUs and ", ranks, ranks == 1 ? " rank" : " ranks",
                   " on this machine; each rank needs its own GPU: name as many GPUs as ranks",
                   ranks > gpus ? ", or let ranks share them with --share_gpu" : ""));
}

DeviceChoice ChooseDevice(const Flags& flags) { return ChoiceOf(flags, GpuOf(flags)); }

DeviceChoice ChooseDevice(const Flags& flags, const NetSpec& net) {
  DeviceChoice choice = ChooseDevice(flags);
  TakeMath(flags, &net, &choice);
  return choice;
}

DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec, const RankOnMachine& rank) {
  std::optional<int> gpu;
  if (const auto gpus = GpusOf(flags)) {
    gpu = rank.count == 0 ? GpuOf(flags) : GpuOfRank(*gpus, rank, WrittenFlag(flags));
  }
  DeviceChoice choice = ChoiceOf(flags, gpu);
  if (choice.kind == DeviceKind::kCpu && AsksForGpu(spec)) {
    choice.kind = DeviceKind::kCuda;
    choice.gpu.id = rank.count <= 1 || spec.proto.has_device_id()
                        ? spec.proto.device_id()
                        : GpuOfRank(AllGpus(), rank, "solver_mode is GPU");
    choice.where = spec.Where("solver_mode");
    if (choice.gpu.id < 0) {
      spec.Fail("device_id", Join("device_id is ", choice.gpu.id, "; the first GPU is 0"));
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
    RefuseDevice(choice, error);
  }
}

std::unique_ptr<Device> MakeLoggedDevice(const DeviceChoice& choice) {
  std::unique_ptr<Device> device = MakeDevice(choice);
  LogDevice(choice, *device);
  return device;
}

}  // namespace trainer

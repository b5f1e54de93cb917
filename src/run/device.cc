#include "trainer/run/device.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the file that --gpu_cache names by default, in $XDG_CACHE_HOME or ~/.cache; "" if the
// user has neither.
std::string DefaultGpuCache() {
  constexpr char kFile[] = "trainer/convolutions";
  const std::string cache = EnvironmentVariable("XDG_CACHE_HOME"),
                    home = EnvironmentVariable("HOME");
  if (cache.starts_with('/')) return JoinPath(cache, kFile);
  return home.starts_with('/') ? JoinPath(home, std::string(".cache/") + kFile) : "";
}

// Sets the file that stores the chosen convolution algorithms: the file of --gpu_cache, none for
// "off", or the default file.
void SetGpuCache(const DeviceOptions& options, GpuOptions* gpu) {
  gpu->algorithm_file_asked = !options.gpu_cache.empty();
  if (!gpu->algorithm_file_asked) {
    gpu->algorithm_file = DefaultGpuCache();
  } else if (options.gpu_cache != "off") {
    gpu->algorithm_file = options.gpu_cache;
  }
}

// Returns whether `id` has only digits, at most four, so that std::stoi cannot overflow.
bool IsGpuNumber(const std::string& id) {
  return id.size() <= 4 &&
         std::ranges::all_of(id, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns the GPUs that --gpu=all means. Without a GPU it returns GPU 0, so that MakeDevice says
// why there is none.
std::vector<int> AllGpus() {
  std::vector<int> gpus(std::max<size_t>(1, ListGpus().size()));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

// Returns the flag as the user wrote it, for messages.
std::string GpuFlagText(const DeviceOptions& options) { return "--gpu=" + options.gpu; }

// Returns GPU `gpu`, or the CPU without a value, with the settings of the flags.
DeviceChoice ChooseGpu(const DeviceOptions& options, const std::optional<int>& gpu) {
  DeviceChoice choice;
  choice.gpu.tf32 = options.tf32.value_or(false);
  choice.gpu.deterministic = options.deterministic;
  choice.gpu.graphs = options.graphs;
  SetGpuCache(options, &choice.gpu);
  if (!gpu) return choice;
  choice.kind = DeviceKind::kCuda;
  choice.gpu.id = *gpu;
  choice.flag = GpuFlagText(options);
  return choice;
}

// Returns whether the solver sets solver_mode to GPU. The default value of the field is GPU too,
// but a solver without the field trains on the CPU.
bool AsksForGpu(const SolverSpec& spec) {
  return spec.proto.has_solver_mode() && spec.proto.solver_mode() == caffe::SolverParameter::GPU;
}

// Returns the GPU of a rank: the one with its local number among `gpus`, modulo their number. A
// single number may mean another GPU for each rank, because a batch system can let each rank see
// its own GPU as number 0.
int GpuOfRank(const std::vector<int>& gpus, const LocalRank& rank, const std::string& who) {
  RequireGpusForRanks(static_cast<int>(gpus.size()), rank.size, rank.share_gpu, who);
  return gpus[static_cast<size_t>(rank.rank) % gpus.size()];
}

// Without --tf32, lets the net's default_cudnn_math_override decide about TF32, and adds a note for
// the log. `net` may be null.
void SetMathMode(const DeviceOptions& options, const NetSpec* net, DeviceChoice* choice) {
  if (options.tf32 || choice->kind == DeviceKind::kCpu || net == nullptr) return;
  const int math = net->proto.default_cudnn_math_override();
  if (math < 0) return;
  choice->gpu.tf32 = math == 1;
  choice->notes.push_back(Join(net->Where("default_cudnn_math_override").ToString(),
                               ": default_cudnn_math_override: ", math, " has the effect of --",
                               math == 1 ? "" : "no", "tf32"));
}

// Throws `error`. If it is kUnavailable, first adds the flag or the line that asks for the GPU, and
// how to compute on the CPU instead.
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

// Logs Caffe's line "Use CPU.", or "Use GPU 0: NVIDIA H200...", and the notes of the choice.
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

std::vector<int> RequestedGpus(const DeviceOptions& options) {
  if (options.gpu.empty()) return {};
  if (options.gpu == "all") return AllGpus();
  const std::vector<std::string> ids = SplitList(options.gpu);
  if (ids.empty() || !std::ranges::all_of(ids, IsGpuNumber)) {
    throw Error(ErrorCode::kUsage,
                GpuFlagText(options) + ": give the number of a GPU, such as 0, or all");
  }
  std::vector<int> gpus;
  for (const std::string& id : ids) {
    if (std::ranges::find(gpus, std::stoi(id)) != gpus.end()) {
      throw Error(ErrorCode::kUsage, Join(GpuFlagText(options), ": GPU ", id, " is named twice"));
    }
    gpus.push_back(std::stoi(id));
  }
  return gpus;
}

std::optional<int> RequestedGpu(const DeviceOptions& options) {
  const std::vector<int> gpus = RequestedGpus(options);
  if (gpus.empty()) return std::nullopt;
  if (gpus.size() > 1) {
    throw Error(
        ErrorCode::kUnavailable,
        GpuFlagText(options) + ": only 'train' can use several GPUs; name one, such as --gpu=0");
  }
  return gpus.front();
}

void RequireGpusForRanks(int gpus, int ranks, bool share_gpu, const std::string& who) {
  if (gpus == 1 || gpus == ranks || (share_gpu && ranks > gpus)) return;
  throw Error(ErrorCode::kUsage,
              Join(who, ": ", gpus, " GPUs and ", ranks, ranks == 1 ? " rank" : " ranks",
                   " on this machine; each rank needs its own GPU: name as many GPUs as ranks",
                   ranks > gpus ? ", or let ranks share them with --share_gpu" : ""));
}

DeviceChoice ChooseDevice(const DeviceOptions& options) {
  return ChooseGpu(options, RequestedGpu(options));
}

DeviceChoice ChooseDevice(const DeviceOptions& options, const NetSpec& net) {
  DeviceChoice choice = ChooseDevice(options);
  SetMathMode(options, &net, &choice);
  return choice;
}

DeviceChoice ChooseDevice(const DeviceOptions& options, const SolverSpec& spec,
                          const LocalRank& rank) {
  std::optional<int> gpu;
  if (const std::vector<int> gpus = RequestedGpus(options); !gpus.empty()) {
    gpu = rank.size == 0 ? RequestedGpu(options) : GpuOfRank(gpus, rank, GpuFlagText(options));
  }
  DeviceChoice choice = ChooseGpu(options, gpu);
  if (choice.kind == DeviceKind::kCpu && AsksForGpu(spec)) {
    choice.kind = DeviceKind::kCuda;
    choice.gpu.id = rank.size <= 1 || spec.proto.has_device_id()
                        ? spec.proto.device_id()
                        : GpuOfRank(AllGpus(), rank, "solver_mode is GPU");
    choice.where = spec.Where("solver_mode");
    if (choice.gpu.id < 0) {
      spec.Fail("device_id", Join("device_id is ", choice.gpu.id, "; the first GPU is 0"));
    }
  }
  SetMathMode(options, spec.train.net, &choice);
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

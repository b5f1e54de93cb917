#pragma once
// Which device a command computes on. Only device.cc makes devices for commands.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The values of the flags with the same names.
struct DeviceOptions {
  std::string gpu = "";  // numbers separated by commas, or "all"; "": --gpu is not given
  std::optional<bool> tf32 = std::nullopt;  // without a value the net decides, else it is off
  bool deterministic = false;
  std::string gpu_cache = "";  // a file or "off"; "": the default file
  bool graphs = true;          // run passes as CUDA graphs
};

// The chosen device and the reason for it. The CPU device uses as many threads as the process may
// use.
struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
  GpuOptions gpu;                  // used if `kind` is a GPU
  std::string flag;                // "--gpu=0", or "" if no flag asks for the GPU
  SourceRef where;                 // the line of solver_mode, if that asks for the GPU
  std::vector<std::string> notes;  // for the log
};

// Returns the GPUs that --gpu names; none if it is not given. Throws kUsage if it is neither "all"
// nor a list of different numbers.
std::vector<int> RequestedGpus(const DeviceOptions& options);
// Returns the single GPU that --gpu names, for commands that compute on one GPU; no value if the
// flag is not given. Throws kUnavailable if it names several, and as RequestedGpus does.
std::optional<int> RequestedGpu(const DeviceOptions& options);

// A rank among the ranks of its host. A run alone has size 1, and commands without ranks have 0.
struct LocalRank {
  int rank = 0, size = 0;
  bool share_gpu = false;  // several ranks may compute on one GPU
};
// Throws kUsage, with a message that begins with `who`, if several GPUs are named, but not one for
// each rank of this host. With `share_gpu` there may be fewer GPUs than ranks.
void RequireGpusForRanks(int gpus, int ranks, bool share_gpu, const std::string& who);

// Returns the GPU that --gpu names, or the CPU if the flag is not given. Throws as RequestedGpu
// does.
DeviceChoice ChooseDevice(const DeviceOptions& options);
// Returns the same for a command that runs `net`: without --tf32, the net's
// default_cudnn_math_override decides about TF32.
DeviceChoice ChooseDevice(const DeviceOptions& options, const NetSpec& net);
// Returns the device of a rank that trains. --gpu wins over solver_mode. A solver without
// solver_mode trains on the CPU, as with Caffe's program, and device_id counts for GPUs only. If
// several GPUs are named, a rank takes the one with its local number. Throws as RequireGpusForRanks
// does, and kConfig for a negative device_id.
DeviceChoice ChooseDevice(const DeviceOptions& options, const SolverSpec& spec,
                          const LocalRank& rank = {});

// Makes the chosen device; by default the CPU device, which commands that only plan use. Throws
// kUnavailable if the GPU cannot be used, with the flag or line that asks for it, the reason, and
// what to write instead.
std::unique_ptr<Device> MakeDevice(const DeviceChoice& choice = {});
// Calls MakeDevice and logs the device as Caffe does.
std::unique_ptr<Device> MakeLoggedDevice(const DeviceChoice& choice);

}  // namespace trainer

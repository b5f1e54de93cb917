#pragma once
// Which device a verb computes on. The only file that makes one.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "trainer/backend/device.h"
#include "trainer/backend/gpu.h"
#include "trainer/config/net_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The flags of a verb that computes: `flags`, --gpu, --tf32, --deterministic and --gpu_cache.
std::vector<Flag> WithDeviceFlags(std::vector<Flag> flags);

// What a command asks for. On the CPU it computes with as many threads as the process may use.
struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
  GpuOptions gpu;                  // on a GPU
  std::string flag;                // "--gpu=0", "" where none asks for the GPU
  SourceRef where;                 // the solver_mode that asks for it, otherwise
  std::vector<std::string> notes;  // for the log
};

// The GPUs that --gpu names. Throws kUsage where it is neither "all" nor a list of numbers.
std::optional<std::vector<int>> GpusOf(const Flags& flags);
// The same of a verb that computes on one. Throws kUnavailable where it names several.
std::optional<int> GpuOf(const Flags& flags);

// The ranks of a run that are on one machine, 1 of a run alone, and this one's number among them;
// 0 of a verb that has none.
struct RankOnMachine {
  int local = 0, count = 0;
  bool share_gpu = false;  // whether several may compute on one
};
// Throws kUsage, beginning with `who`, for several GPUs whose number is not that of the ranks.
void RequireGpusForRanks(int gpus, int ranks, bool share_gpu, const std::string& who);

// Throws as GpuOf does.
DeviceChoice ChooseDevice(const Flags& flags);
// The same with a net, whose default_cudnn_math_override stands for --tf32.
DeviceChoice ChooseDevice(const Flags& flags, const NetSpec& net);
// The same with a solver and its training net. --gpu wins over its solver_mode. One without
// solver_mode trains on the CPU, as with Caffe's program, and device_id counts for GPUs only.
// A rank takes the one of several GPUs that has its number.
DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec,
                          const RankOnMachine& rank = {});

// Without a choice the device of verbs that compute nothing and only plan. Throws kUnavailable
// where the GPU cannot be used, with the flag or the line that asks for it, why, and what to write.
std::unique_ptr<Device> MakeDevice(const DeviceChoice& choice = {});
// MakeDevice, and logs the device as Caffe does.
std::unique_ptr<Device> MakeLoggedDevice(const DeviceChoice& choice);

}  // namespace trainer

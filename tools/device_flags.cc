#include "device_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

Flag GpuFlag() {
  return {.name = "gpu",
          .value = "LIST",
          .help = "GPUs to use, as 0 or 0,1 or all; refused: this build has no CUDA"};
}

DeviceChoice ChooseDevice(const Flags& flags) {
  if (!flags.Has("gpu")) return {};
  const std::string& text = flags.Text("gpu");
  const std::vector<std::string> ids = flags.List("gpu");
  const bool numbers = std::ranges::all_of(ids, [](const std::string& id) {
    return id.size() <= 4 &&
           std::ranges::all_of(id, [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  if (text != "all" && (!numbers || ids.empty())) {
    throw Error(
        ErrorCode::kUsage,
        Join("--gpu=", text, ": give numbers with commas between, such as 0 or 0,1, or all"));
  }
  throw Error(ErrorCode::kUnavailable,
              Join("--gpu=", text, ": this build has no CUDA; leave out --gpu to use the CPU"));
}

DeviceChoice ChooseDevice(const Flags& flags, const SolverSpec& spec) {
  const DeviceChoice choice = ChooseDevice(flags);
  if (!spec.proto.has_solver_mode() || spec.proto.solver_mode() != caffe::SolverParameter::GPU) {
    return choice;
  }
  throw Error(
      ErrorCode::kUnavailable, spec.Where("solver_mode"),
      "solver_mode is GPU and this build has no CUDA; write solver_mode: CPU, or give --set "
      "solver_mode=CPU");
}

std::unique_ptr<Device> MakeDevice(const DeviceChoice& choice) {
  if (choice.kind == DeviceKind::kCpu) return MakeCpuDevice();
  throw Error(ErrorCode::kUnavailable, "this build has no CUDA");
}

void LogDevice(const DeviceChoice& choice) {
  LOG(INFO) << (choice.kind == DeviceKind::kCpu ? "Use CPU." : "Use GPU.");
}

}  // namespace trainer

#include "trainer/backend/device/gpu.h"

#include "trainer/base/error/error.h"
#include "trainer/base/process/gpu_reading.h"
#include "trainer/base/ranks/communicator.h"

namespace trainer {
namespace {

constexpr const char* kNotBuilt =
    "this build has no CUDA support; build it with -DTRAINER_CUDA=ON on a machine with nvcc";

// Returns the functions that SetGpuBackend has set; all are null in a build without CUDA.
GpuBackend& RegisteredBackend() {
  static GpuBackend backend;
  return backend;
}

}  // namespace

void SetGpuBackend(const GpuBackend& backend) { RegisteredBackend() = backend; }

const GpuBackend& RequireGpuBackend() {
  if (RegisteredBackend().make == nullptr) throw Error(ErrorCode::kUnavailable, kNotBuilt);
  return RegisteredBackend();
}

GpuSupport FindGpus() {
  if (RegisteredBackend().find != nullptr) return RegisteredBackend().find();
  GpuSupport none;
  none.missing = {kNotBuilt};
  return none;
}

std::unique_ptr<Device> MakeGpuDevice(const GpuOptions& options) {
  return RequireGpuBackend().make(options);
}

std::vector<std::string> ListGpus() {
  return RegisteredBackend().list == nullptr ? std::vector<std::string>()
                                             : RegisteredBackend().list();
}

std::unique_ptr<GpuMonitor> MakeGpuMonitor(const Device& device, std::string* why) {
  if (RegisteredBackend().make_monitor != nullptr && device.kind() == DeviceKind::kCuda) {
    return RegisteredBackend().make_monitor(device, why);
  }
  *why = "the device is not a GPU";
  return nullptr;
}

}  // namespace trainer

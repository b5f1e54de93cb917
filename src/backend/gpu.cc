#include "trainer/backend/device/gpu.h"

#include "trainer/backend/device/gpu_communicator.h"
#include "trainer/backend/device/gpu_monitor.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

constexpr const char* kNotBuilt =
    "this build has no CUDA support; build it with cmake --preset cuda on a machine with nvcc";

// Returns the functions that SetGpuBackend has set; all are null in a build without CUDA.
GpuBackend& RegisteredBackend() {
  static GpuBackend backend;
  return backend;
}

}  // namespace

void SetGpuBackend(const GpuBackend& backend) { RegisteredBackend() = backend; }

GpuSupport FindGpus() {
  if (RegisteredBackend().find != nullptr) return RegisteredBackend().find();
  GpuSupport none;
  none.missing = {kNotBuilt};
  return none;
}

std::unique_ptr<Device> MakeGpuDevice(const GpuOptions& options) {
  if (RegisteredBackend().make != nullptr) return RegisteredBackend().make(options);
  throw Error(ErrorCode::kUnavailable, kNotBuilt);
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

std::unique_ptr<Communicator> MakeStagedGroup(const Device& device,
                                              const GpuGroupOptions& options) {
  if (RegisteredBackend().make_staged_group == nullptr) {
    throw Error(ErrorCode::kUnavailable, kNotBuilt);
  }
  return RegisteredBackend().make_staged_group(device, options);
}

std::unique_ptr<Communicator> MakeNcclGroup(const Device& device, const GpuGroupOptions& options,
                                            std::string* note) {
  if (RegisteredBackend().make_nccl_group == nullptr)
    throw Error(ErrorCode::kUnavailable, kNotBuilt);
  return RegisteredBackend().make_nccl_group(device, options, note);
}

std::unique_ptr<Communicator> MakeMpiGroup(const Device& device, const GpuGroupOptions& options,
                                           std::string* note) {
  if (RegisteredBackend().make_mpi_group == nullptr)
    throw Error(ErrorCode::kUnavailable, kNotBuilt);
  return RegisteredBackend().make_mpi_group(device, options, note);
}

}  // namespace trainer

#include "trainer/backend/gpu.h"

#include "trainer/base/error.h"

namespace trainer {
namespace {

constexpr const char* kNotBuilt =
    "this build has no CUDA; build it with -DTRAINER_CUDA=ON where nvcc is";

GpuBackend& Registered() {
  static GpuBackend backend = {nullptr, nullptr};
  return backend;
}

}  // namespace

void SetGpuBackend(const GpuBackend& backend) { Registered() = backend; }

GpuSupport FindGpus() {
  if (Registered().find != nullptr) return Registered().find();
  GpuSupport none;
  none.missing = {kNotBuilt};
  return none;
}

std::unique_ptr<Device> MakeGpuDevice(const GpuOptions& options) {
  if (Registered().make != nullptr) return Registered().make(options);
  throw Error(ErrorCode::kUnavailable, kNotBuilt);
}

}  // namespace trainer

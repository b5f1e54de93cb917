#include "cuda/runtime.h"

#include "cuda/cuda_device.h"
#include "cuda/errors.h"

namespace trainer::cuda {
namespace {

const Runtime*& Registered() {
  static const Runtime* runtime = nullptr;
  return runtime;
}

}  // namespace

const Runtime* GetRuntime() { return Registered(); }

void SetRuntime(const Runtime* runtime) {
  Registered() = runtime;
  ForgetLostGpus();
  SetGpuBackend(runtime == nullptr ? GpuBackend{nullptr, nullptr} : GpuBackend{FindAll, MakeOne});
}

void UseGpu(int id) {
  int now = -1;
  GetRuntime()->GetDevice(&now);
  if (now != id) Check(GetRuntime()->SetDevice(id), "choosing it (cudaSetDevice)");
}

}  // namespace trainer::cuda

#include "cuda/runtime.h"

#include "cuda/cuda_device.h"
#include "cuda/errors.h"

namespace trainer::cuda {
namespace {

const Runtime*& Registered() {
  static const Runtime* runtime = nullptr;
  return runtime;
}

int& CurrentGpu() {
  static thread_local int id = 0;
  return id;
}

}  // namespace

const Runtime* GetRuntime() { return Registered(); }

void SetRuntime(const Runtime* runtime) {
  Registered() = runtime;
  SetGpuBackend(runtime == nullptr ? GpuBackend{nullptr, nullptr} : GpuBackend{FindAll, MakeOne});
}

void UseGpu(int id) {
  int now = -1;
  CurrentGpu() = id;
  GetRuntime()->GetDevice(&now);
  if (now != id) Check(GetRuntime()->SetDevice(id), "choosing it (cudaSetDevice)");
}

int UsedGpu() { return CurrentGpu(); }

}  // namespace trainer::cuda

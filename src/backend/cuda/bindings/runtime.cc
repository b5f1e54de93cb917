#include "cuda/bindings/runtime.h"

#include "cuda/bindings/errors.h"
#include "cuda/bindings/nvml.h"
#include "cuda/communicator/device_communicator.h"
#include "cuda/cuda_device.h"

namespace trainer::cuda {
namespace {

// Returns the table that SetRuntime has set.
const Runtime*& RegisteredRuntime() {
  static const Runtime* runtime = nullptr;
  return runtime;
}

// Returns the GPU of the thread's last UseGpu call.
int& CurrentGpu() {
  static thread_local int id = 0;
  return id;
}

}  // namespace

const Runtime* GetRuntime() { return RegisteredRuntime(); }

void SetRuntime(const Runtime* runtime) {
  RegisteredRuntime() = runtime;
  if (runtime == nullptr) return SetGpuBackend({});
  SetGpuBackend({.find = FindAll,
                 .make = MakeOne,
                 .list = ListAll,
                 .make_staged_group = MakeStaged,
                 .make_nccl_group = MakeNccl,
                 .make_mpi_group = MakeMpi,
                 .make_monitor = MakeMonitor});
}

void UseGpu(int id) {
  int now = -1;
  CurrentGpu() = id;
  GetRuntime()->GetDevice(&now);
  if (now != id) Check(GetRuntime()->SetDevice(id), "choosing it (cudaSetDevice)");
}

int UsedGpu() { return CurrentGpu(); }

}  // namespace trainer::cuda

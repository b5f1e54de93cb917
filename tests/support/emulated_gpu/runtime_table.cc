// Registers the emulated GPU in each program that links this file.

#include "support/emulated_gpu/block.h"
#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/state.h"
#include "support/emulated_gpu/tables.h"

namespace emulated_gpu {
namespace {

constexpr trainer::cuda::Runtime kRuntime = {
    .name = "emulated",
#define EMULATED_GPU_CALL(name) .name = calls::name
    EMULATED_GPU_CALL(GetDeviceCount),
    EMULATED_GPU_CALL(SetDevice),
    EMULATED_GPU_CALL(GetDevice),
    EMULATED_GPU_CALL(DeviceGetAttribute),
    EMULATED_GPU_CALL(DeviceGetName),
    EMULATED_GPU_CALL(DeviceGetPciBusId),
    EMULATED_GPU_CALL(MemGetInfo),
    EMULATED_GPU_CALL(DriverGetVersion),
    EMULATED_GPU_CALL(RuntimeGetVersion),
    EMULATED_GPU_CALL(DeviceSynchronize),
    EMULATED_GPU_CALL(GetLastError),
    EMULATED_GPU_CALL(PeekAtLastError),
    EMULATED_GPU_CALL(GetErrorName),
    EMULATED_GPU_CALL(GetErrorString),
    EMULATED_GPU_CALL(Malloc),
    EMULATED_GPU_CALL(Free),
    EMULATED_GPU_CALL(HostAlloc),
    EMULATED_GPU_CALL(FreeHost),
    EMULATED_GPU_CALL(HostRegister),
    EMULATED_GPU_CALL(HostUnregister),
    EMULATED_GPU_CALL(MemcpyAsync),
    EMULATED_GPU_CALL(MemsetAsync),
    EMULATED_GPU_CALL(StreamCreateWithFlags),
    EMULATED_GPU_CALL(StreamDestroy),
    EMULATED_GPU_CALL(StreamSynchronize),
    EMULATED_GPU_CALL(StreamQuery),
    EMULATED_GPU_CALL(StreamWaitEvent),
    EMULATED_GPU_CALL(EventCreateWithFlags),
    EMULATED_GPU_CALL(EventDestroy),
    EMULATED_GPU_CALL(EventRecord),
    EMULATED_GPU_CALL(EventRecordWithFlags),
    EMULATED_GPU_CALL(EventSynchronize),
    EMULATED_GPU_CALL(EventQuery),
    EMULATED_GPU_CALL(EventElapsedTime),
    EMULATED_GPU_CALL(StreamBeginCapture),
    EMULATED_GPU_CALL(StreamEndCapture),
    EMULATED_GPU_CALL(GraphGetNodes),
    EMULATED_GPU_CALL(GraphInstantiate),
    EMULATED_GPU_CALL(GraphLaunch),
    EMULATED_GPU_CALL(GraphExecDestroy),
    EMULATED_GPU_CALL(GraphDestroy),
#undef EMULATED_GPU_CALL
};

const bool kRegistered = [] {
  trainer::cuda::SetRuntime(&kRuntime);
  trainer::cuda::SetCublasLt(&TheCublasLt());
  trainer::cuda::SetCudnn(&TheCudnn());
  trainer::cuda::SetNccl(&TheNccl());
  trainer::cuda::SetNvml(&TheNvml());
  hooks = {.launch = calls::Launch, .sync = Sync, .warp = Warp};
  return true;
}();

}  // namespace
}  // namespace emulated_gpu

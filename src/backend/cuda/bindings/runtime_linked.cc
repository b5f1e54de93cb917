// The table of the CUDA runtime that this program is linked with.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "cuda/bindings/runtime.h"

namespace trainer::cuda {
namespace {

// Implements Runtime::DeviceGetName: the runtime offers the name only as a part of the properties.
int DeviceGetName(char* name, int length, int device) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, device);
  if (status != cudaSuccess) return static_cast<int>(status);
  std::snprintf(name, static_cast<size_t>(length), "%s", properties.name);
  return kSuccess;
}

// Wraps a call so that its result and its enums are ints.
template <auto kCall>
struct AsInt;
template <class... Args, cudaError_t (*kCall)(Args...)>
struct AsInt<kCall> {
  template <class... Given>
  static int Call(Given... given) {
    return static_cast<int>(kCall(static_cast<Args>(given)...));
  }
};

// Returns the table of the linked runtime.
Runtime Linked() {
  Runtime r;
  r.name = "CUDA";
  r.linked = true;
  r.GetDeviceCount = AsInt<cudaGetDeviceCount>::Call;
  r.SetDevice = AsInt<cudaSetDevice>::Call;
  r.GetDevice = AsInt<cudaGetDevice>::Call;
  r.DeviceGetAttribute = AsInt<cudaDeviceGetAttribute>::Call;
  r.DeviceGetName = DeviceGetName;
  r.DeviceGetPciBusId = AsInt<cudaDeviceGetPCIBusId>::Call;
  r.MemGetInfo = AsInt<cudaMemGetInfo>::Call;
  r.DriverGetVersion = AsInt<cudaDriverGetVersion>::Call;
  r.RuntimeGetVersion = AsInt<cudaRuntimeGetVersion>::Call;
  r.DeviceSynchronize = AsInt<cudaDeviceSynchronize>::Call;
  r.GetLastError = AsInt<cudaGetLastError>::Call;
  r.PeekAtLastError = AsInt<cudaPeekAtLastError>::Call;
  r.GetErrorName = [](int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); };
  r.GetErrorString = [](int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); };
  r.Malloc = AsInt<static_cast<cudaError_t (*)(void**, size_t)>(cudaMalloc)>::Call;
  r.Free = AsInt<cudaFree>::Call;
  r.HostAlloc = AsInt<static_cast<cudaError_t (*)(void**, size_t, unsigned)>(cudaHostAlloc)>::Call;
  r.FreeHost = AsInt<cudaFreeHost>::Call;
  r.HostRegister = AsInt<cudaHostRegister>::Call;
  r.HostUnregister = AsInt<cudaHostUnregister>::Call;
  r.MemcpyAsync = AsInt<cudaMemcpyAsync>::Call;
  r.MemsetAsync = AsInt<cudaMemsetAsync>::Call;
  r.StreamCreateWithFlags = AsInt<cudaStreamCreateWithFlags>::Call;
  r.StreamDestroy = AsInt<cudaStreamDestroy>::Call;
  r.StreamSynchronize = AsInt<cudaStreamSynchronize>::Call;
  r.StreamQuery = AsInt<cudaStreamQuery>::Call;
  r.StreamWaitEvent = AsInt<static_cast<cudaError_t (*)(cudaStream_t, cudaEvent_t, unsigned)>(
      cudaStreamWaitEvent)>::Call;
  r.EventCreateWithFlags =
      AsInt<static_cast<cudaError_t (*)(cudaEvent_t*, unsigned)>(cudaEventCreateWithFlags)>::Call;
  r.EventDestroy = AsInt<cudaEventDestroy>::Call;
  r.EventRecord =
      AsInt<static_cast<cudaError_t (*)(cudaEvent_t, cudaStream_t)>(cudaEventRecord)>::Call;
  r.EventRecordWithFlags = AsInt<static_cast<cudaError_t (*)(cudaEvent_t, cudaStream_t, unsigned)>(
      cudaEventRecordWithFlags)>::Call;
  r.EventSynchronize = AsInt<cudaEventSynchronize>::Call;
  r.EventQuery = AsInt<cudaEventQuery>::Call;
  r.EventElapsedTime = AsInt<cudaEventElapsedTime>::Call;
  r.StreamBeginCapture = AsInt<cudaStreamBeginCapture>::Call;
  r.StreamEndCapture = AsInt<cudaStreamEndCapture>::Call;
  r.GraphGetNodes = AsInt<cudaGraphGetNodes>::Call;
  r.GraphInstantiate = [](GraphExec* exec, Graph graph) {
    return static_cast<int>(cudaGraphInstantiate(exec, graph, 0));
  };
  r.GraphLaunch = AsInt<cudaGraphLaunch>::Call;
  r.GraphExecDestroy = AsInt<cudaGraphExecDestroy>::Call;
  r.GraphDestroy = AsInt<cudaGraphDestroy>::Call;
  return r;
}

const Runtime kLinked = Linked();
const bool kEntered = [] {
  SetRuntime(&kLinked);
  return true;
}();

}  // namespace
}  // namespace trainer::cuda

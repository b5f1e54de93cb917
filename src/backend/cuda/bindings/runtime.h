#pragma once
// The CUDA runtime calls that the backend uses, as a table of functions. It is filled from the
// linked library or by the emulated GPU of the tests. Names, semantics and values follow the CUDA
// Runtime API; results are cudaError_t as int. Users of this header need no CUDA headers.

#include <cstddef>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;

namespace trainer::cuda {

using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraph_st*;
using GraphExec = CUgraphExec_st*;

// The values of cudaError_t that this program distinguishes.
inline constexpr int kSuccess = 0, kErrorInvalidValue = 1, kErrorMemoryAllocation = 2,
                     kErrorInitializationError = 3, kErrorInvalidConfiguration = 9,
                     kErrorStubLibrary = 34, kErrorInsufficientDriver = 35,
                     kErrorDevicesUnavailable = 46, kErrorNoDevice = 100, kErrorInvalidDevice = 101,
                     kErrorNoKernelImageForDevice = 209, kErrorEccUncorrectable = 214,
                     kErrorUnsupportedPtxVersion = 222, kErrorNotReady = 600,
                     kErrorIllegalAddress = 700, kErrorLaunchOutOfResources = 701,
                     kErrorLaunchTimeout = 702, kErrorLaunchFailure = 719,
                     kErrorSystemNotReady = 802, kErrorSystemDriverMismatch = 803,
                     kErrorCompatNotSupportedOnDevice = 804;
// cudaMemcpyKind
inline constexpr int kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;
// Flags
inline constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2, kHostAllocPortable = 1,
                          kHostRegisterPortable = 1, kEventRecordExternal = 1,
                          kEventWaitExternal = 1;
// cudaStreamCaptureMode
inline constexpr int kCaptureThreadLocal = 1;
// cudaDeviceAttr
inline constexpr int kAttributeClockRate = 13, kAttributeMultiProcessorCount = 16,
                     kAttributeMemoryClockRate = 36, kAttributeMemoryBusWidth = 37,
                     kAttributeComputeCapabilityMajor = 75, kAttributeComputeCapabilityMinor = 76;

struct Runtime {
  // "CUDA 13.0", or "emulated"
  const char* name = "";
  // True for NVIDIA's own runtime, which NVIDIA's libraries need.
  bool linked = false;

  int (*GetDeviceCount)(int* count);
  int (*SetDevice)(int device);
  int (*GetDevice)(int* device);
  int (*DeviceGetAttribute)(int* value, int attribute, int device);
  // The product name, null-terminated and truncated to `length`.
  int (*DeviceGetName)(char* name, int length, int device);
  int (*DeviceGetPciBusId)(char* name, int length, int device);
  int (*MemGetInfo)(size_t* free, size_t* total);
  int (*DriverGetVersion)(int* version);  // 1000 * major + 10 * minor; 0: no driver
  int (*RuntimeGetVersion)(int* version);
  int (*DeviceSynchronize)();

  int (*GetLastError)();  // also clears the error, unless it is sticky
  int (*PeekAtLastError)();
  const char* (*GetErrorName)(int error);
  const char* (*GetErrorString)(int error);

  int (*Malloc)(void** memory, size_t bytes);
  int (*Free)(void* memory);
  int (*HostAlloc)(void** memory, size_t bytes, unsigned flags);
  int (*FreeHost)(void* memory);
  // Page-lock and unlock memory from another allocator.
  int (*HostRegister)(void* memory, size_t bytes, unsigned flags);
  int (*HostUnregister)(void* memory);
  int (*MemcpyAsync)(void* to, const void* from, size_t bytes, int kind, Stream stream);
  int (*MemsetAsync)(void* memory, int value, size_t bytes, Stream stream);

  int (*StreamCreateWithFlags)(Stream* stream, unsigned flags);
  int (*StreamDestroy)(Stream stream);
  int (*StreamSynchronize)(Stream stream);
  int (*StreamQuery)(Stream stream);
  int (*StreamWaitEvent)(Stream stream, Event event, unsigned flags);
  int (*EventCreateWithFlags)(Event* event, unsigned flags);
  int (*EventDestroy)(Event event);
  int (*EventRecord)(Event event, Stream stream);
  int (*EventRecordWithFlags)(Event event, Stream stream, unsigned flags);
  int (*EventSynchronize)(Event event);
  int (*EventQuery)(Event event);
  int (*EventElapsedTime)(float* milliseconds, Event start, Event end);

  int (*StreamBeginCapture)(Stream stream, int mode);
  int (*StreamEndCapture)(Stream stream, Graph* graph);
  // Returns only the count if `nodes` is null.
  int (*GraphGetNodes)(Graph graph, CUgraphNode_st** nodes, size_t* count);
  int (*GraphInstantiate)(GraphExec* exec, Graph graph);
  int (*GraphLaunch)(GraphExec exec, Stream stream);
  int (*GraphExecDestroy)(GraphExec exec);
  int (*GraphDestroy)(Graph graph);
};

// Returns the runtime of this program. It is null in a build for the emulated GPU if no test linked
// that.
const Runtime* GetRuntime();
// Sets the runtime and registers the backend in device/gpu.h; null removes both. Called before
// main() by the file that provides the runtime; tests may also call it while no device exists.
void SetRuntime(const Runtime* runtime);

// Makes GPU `id` the current device of the calling thread.
void UseGpu(int id);
// Returns the GPU of the thread's last UseGpu call. Works even if CUDA does not respond any more.
int UsedGpu();

}  // namespace trainer::cuda

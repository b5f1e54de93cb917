#pragma once
// The calls of the CUDA runtime that the backend uses, as a table: filled from the linked library,
// or by the emulated GPU of the tests. Names, meanings and numbers are those of the CUDA Runtime
// API; results are cudaError_t as int. No header of CUDA is needed to compile its users.

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

// cudaError_t, those that are told apart.
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
  // NVIDIA's own, with which NVIDIA's libraries work.
  bool linked = false;

  int (*GetDeviceCount)(int* count);
  int (*SetDevice)(int device);
  int (*GetDevice)(int* device);
  int (*DeviceGetAttribute)(int* value, int attribute, int device);
  // The product name, ended by 0, cut to `length`.
  int (*DeviceGetName)(char* name, int length, int device);
  int (*DeviceGetPciBusId)(char* name, int length, int device);
  int (*MemGetInfo)(size_t* free, size_t* total);
  int (*DriverGetVersion)(int* version);  // 1000 * major + 10 * minor; 0 without a driver
  int (*RuntimeGetVersion)(int* version);
  int (*DeviceSynchronize)();

  int (*GetLastError)();  // and clears it, unless it is sticky
  int (*PeekAtLastError)();
  const char* (*GetErrorName)(int error);
  const char* (*GetErrorString)(int error);

  int (*Malloc)(void** memory, size_t bytes);
  int (*Free)(void* memory);
  int (*HostAlloc)(void** memory, size_t bytes, unsigned flags);
  int (*FreeHost)(void* memory);
  // Page-locks memory that comes from elsewhere, and lets go of it.
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
  // Their number alone, where `nodes` is null.
  int (*GraphGetNodes)(Graph graph, CUgraphNode_st** nodes, size_t* count);
  int (*GraphInstantiate)(GraphExec* exec, Graph graph);
  int (*GraphLaunch)(GraphExec exec, Stream stream);
  int (*GraphExecDestroy)(GraphExec exec);
  int (*GraphDestroy)(Graph graph);
};

// The runtime of this program, or null: built with the emulated one and no test linked it.
const Runtime* GetRuntime();
// Before main(), by whoever brings the runtime, which enters the backend in device/gpu.h; null
// takes it out. In tests also between devices.
void SetRuntime(const Runtime* runtime);

// Makes GPU `id` the calling thread's: what it calls next goes there.
void UseGpu(int id);
// The one that the thread made its own last, even where CUDA does not answer any more.
int UsedGpu();

}  // namespace trainer::cuda

#pragma once
// The calls of the CUDA runtime, as in cuda/runtime.h.

#include <cstddef>

#include "cuda/bindings/runtime.h"
#include "emulated_device_code.h"

namespace emulated_gpu::calls {

using trainer::cuda::Event;
using trainer::cuda::Graph;
using trainer::cuda::GraphExec;
using trainer::cuda::Stream;

void Launch(KernelLaunch launch);

int GetDeviceCount(int* count);
int SetDevice(int device);
int GetDevice(int* device);
int DeviceGetAttribute(int* value, int attribute, int device);
int DeviceGetName(char* name, int length, int device);
int DeviceGetPciBusId(char* name, int length, int device);
int MemGetInfo(size_t* free, size_t* total);
int DriverGetVersion(int* version);
int RuntimeGetVersion(int* version);
int DeviceSynchronize();
int GetLastError();
int PeekAtLastError();
const char* GetErrorName(int error);
const char* GetErrorString(int error);

int Malloc(void** memory, size_t bytes);
int Free(void* memory);
int HostAlloc(void** memory, size_t bytes, unsigned flags);
int FreeHost(void* memory);
int HostRegister(void* memory, size_t bytes, unsigned flags);
int HostUnregister(void* memory);
int MemcpyAsync(void* to, const void* from, size_t bytes, int kind, Stream stream);
int MemsetAsync(void* memory, int value, size_t bytes, Stream stream);

int StreamCreateWithFlags(Stream* stream, unsigned flags);
int StreamDestroy(Stream stream);
int StreamSynchronize(Stream stream);
int StreamQuery(Stream stream);
int StreamWaitEvent(Stream stream, Event event, unsigned flags);
int EventCreateWithFlags(Event* event, unsigned flags);
int EventDestroy(Event event);
int EventRecord(Event event, Stream stream);
int EventRecordWithFlags(Event event, Stream stream, unsigned flags);
int EventSynchronize(Event event);
int EventQuery(Event event);
int EventElapsedTime(float* milliseconds, Event start, Event end);

int StreamBeginCapture(Stream stream, int mode);
int StreamEndCapture(Stream stream, Graph* graph);
int GraphGetNodes(Graph graph, CUgraphNode_st** nodes, size_t* count);
int GraphInstantiate(GraphExec* exec, Graph graph);
int GraphLaunch(GraphExec exec, Stream stream);
int GraphExecDestroy(GraphExec exec);
int GraphDestroy(Graph graph);

// Returns 0, or the error of a call that is not allowed while this thread captures; the captures
// then become invalid.
int RefuseInCapture(const char* call);

}  // namespace emulated_gpu::calls

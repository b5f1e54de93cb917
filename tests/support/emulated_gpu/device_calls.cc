// Calls for devices, versions and errors.

#include <cstdio>
#include <cstring>

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace calls {
namespace {

using trainer::Join;
namespace cuda = trainer::cuda;

int Devices() { return static_cast<int>(TheOptions().devices.size()); }

const DeviceOptions* Find(int device) {
  if (device < 0 || device >= Devices()) return nullptr;
  return &TheOptions().devices[static_cast<size_t>(device)];
}

int CopyName(const std::string& name, char* to, int length) {
  if (length < 1) return Fail(kInvalidValue);
  std::snprintf(to, static_cast<size_t>(length), "%s", name.c_str());
  return 0;
}

// Returns 0, or the error of a missing driver or device, for all calls that need one.
int Missing() {
  if (TheOptions().driver < TheOptions().runtime / 1000 * 1000) {
    return Fail(cuda::kErrorInsufficientDriver);
  }
  return Devices() == 0 ? Fail(cuda::kErrorNoDevice) : 0;
}

}  // namespace

int GetDeviceCount(int* count) {
  const Call call(CallKind::kOther);
  *count = 0;
  if (call.error() != 0) return call.error();
  if (const int missing = Missing()) return missing;
  *count = Devices();
  return 0;
}

int SetDevice(int device) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int missing = Missing()) return missing;
  if (Find(device) == nullptr) return Fail(cuda::kErrorInvalidDevice);
  SetCurrentDevice(device);
  return 0;
}

int GetDevice(int* device) {
  const Call call(CallKind::kOther);
  *device = CurrentDevice();
  return call.error();
}

int DeviceGetAttribute(int* value, int attribute, int device) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  const DeviceOptions* const options = Find(device);
  if (options == nullptr) return Fail(cuda::kErrorInvalidDevice);
  switch (attribute) {
    case cuda::kAttributeClockRate:
      *value = 1'410'000;
      break;
    case cuda::kAttributeMultiProcessorCount:
      *value = options->multiprocessors;
      break;
    case cuda::kAttributeMemoryClockRate:
      *value = 1'215'000;
      break;
    case cuda::kAttributeMemoryBusWidth:
      *value = 5120;
      break;
    case cuda::kAttributeComputeCapabilityMajor:
      *value = options->major;
      break;
    case cuda::kAttributeComputeCapabilityMinor:
      *value = options->minor;
      break;
    default:
      return Fail(kInvalidValue, Join("cudaDeviceGetAttribute: attribute ", attribute));
  }
  return 0;
}

int DeviceGetName(char* name, int length, int device) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (Find(device) == nullptr) return Fail(cuda::kErrorInvalidDevice);
  return CopyName(Find(device)->name, name, length);
}

int DeviceGetPciBusId(char* name, int length, int device) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (Find(device) == nullptr) return Fail(cuda::kErrorInvalidDevice);
  return CopyName(Join("0000:0", device + TheOptions().first_bus, ":00.0"), name, length);
}

int MemGetInfo(size_t* free, size_t* total) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int missing = Missing()) return missing;
  *free = FreeBytes(CurrentDevice());
  *total = OptionsOf(CurrentDevice()).memory_bytes;
  return 0;
}

int DriverGetVersion(int* version) {
  const Call call(CallKind::kOther);
  *version = TheOptions().driver;
  return call.error();
}

int RuntimeGetVersion(int* version) {
  const Call call(CallKind::kOther);
  *version = TheOptions().runtime;
  return call.error();
}

int DeviceSynchronize() {
  const Call call(CallKind::kSynchronize);
  if (call.error() != 0) return call.error();
  if (const int missing = Missing()) return missing;
  if (const int refused = RefuseInCapture("cudaDeviceSynchronize")) return refused;
  ++TheCounters().synchronizations;
  FinishDevice(CurrentDevice());
  return Broken() != 0 ? Fail(Broken()) : 0;
}

int GetLastError() { return LastError(true); }
int PeekAtLastError() { return LastError(false); }

namespace {

struct ErrorText {
  int error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {35, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient"},
    {46, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {209, "cudaErrorNoKernelImageForDevice", "no kernel image is available"},
    {214, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {kInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in this state"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {kLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "not permitted while capturing"},
    {kCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "the capture is invalid"},
    {kCaptureMerge, "cudaErrorStreamCaptureMerge", "two captures would be merged"},
    {kCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture began on another stream"},
    {kCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "a forked stream did not join"},
    {kCaptureIsolation, "cudaErrorStreamCaptureIsolation", "depends on uncaptured work"},
    {kCapturedEvent, "cudaErrorCapturedEvent", "the event was recorded in a capture"},
    {kCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "another thread's capture"},
};

}  // namespace

const char* GetErrorName(int error) {
  for (const ErrorText& it : kErrors) {
    if (it.error == error) return it.name;
  }
  return "unrecognized error code";
}

const char* GetErrorString(int error) {
  for (const ErrorText& it : kErrors) {
    if (it.error == error) return it.text;
  }
  return "unrecognized error code";
}

}  // namespace calls

namespace state_internal {
void ResetState(const Options& options);
void AcceptLibraryCalls();
}  // namespace state_internal

void Reset(const Options& options) {
  const std::scoped_lock lock(Mutex());
  while (!Captures().empty()) {
    const auto capture = Captures().back();
    EndCapture(capture);
  }
  FinishDevice(-1);
  state_internal::ResetState(options);
  state_internal::AcceptLibraryCalls();
}

}  // namespace emulated_gpu

// Allocations and copies.

#include <cstring>
#include <memory>

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu::calls {
namespace {

using trainer::Join;
namespace cuda = trainer::cuda;

// Returns 0, or the error of a call that uses `bytes` of a device's memory.
int CheckDeviceRange(const void* memory, size_t bytes, const char* what) {
  const Allocation* const a = FindDevice(memory);
  if (a == nullptr) {
    return Fail(kInvalidValue, Join(what, IsDeviceAddress(memory)
                                              ? ": no allocation is there: freed, or past its end"
                                              : ": not memory of a device"));
  }
  const size_t offset = static_cast<size_t>(static_cast<const char*>(memory) - a->memory);
  if (bytes <= a->bytes - offset) return 0;
  return Fail(kInvalidValue, Join(what, ": ", bytes, " bytes at offset ", offset,
                                  " of an allocation of ", a->bytes));
}

int CheckHostRange(const void* memory, size_t bytes, const char* what) {
  if (IsDeviceAddress(memory)) {
    return Fail(kInvalidValue, Join(what, ": memory of a device, not of the host"));
  }
  const Allocation* const a = FindHost(memory);
  if (a == nullptr) return 0;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(memory) - a->memory);
  if (bytes <= a->bytes - offset) return 0;
  return Fail(kInvalidValue, Join(what, ": ", bytes, " bytes at offset ", offset,
                                  " of page-locked memory of ", a->bytes));
}

unsigned DeviceOf(const void* memory) {
  const Allocation* const a = FindDevice(memory);
  return a == nullptr ? 0 : 1u << a->device;
}

int CheckCopy(void* to, const void* from, size_t bytes, int kind) {
  if (kind < cuda::kHostToDevice || kind > cuda::kDeviceToDevice) {
    return Fail(kInvalidMemcpyDirection, Join("cudaMemcpyAsync: kind ", kind));
  }
  const bool to_host = kind == cuda::kDeviceToHost, from_host = kind == cuda::kHostToDevice;
  if (const int error = (to_host ? CheckHostRange : CheckDeviceRange)(
          to, bytes, "the target of cudaMemcpyAsync")) {
    return error;
  }
  return (from_host ? CheckHostRange : CheckDeviceRange)(from, bytes,
                                                         "the source of cudaMemcpyAsync");
}

void CountCopy(size_t bytes) {
  ++TheCounters().copies;
  TheCounters().copied_bytes += static_cast<int64_t>(bytes);
}

// Reads the bytes at once.
int QueueStagedCopy(void* to, const void* from, size_t bytes, Stream stream) {
  auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  return Queue(stream, {.run = [=] { std::memcpy(to, staged->data(), bytes); },
                        .devices = DeviceOf(to),
                        .written_bytes = static_cast<int64_t>(bytes)});
}

int RefusePageableInCapture(Stream stream) {
  if (stream->capture == nullptr) return 0;
  stream->capture->invalid = true;
  return Fail(kCaptureUnsupported,
              "cudaMemcpyAsync of host memory that is not page-locked, on a captured stream");
}

}  // namespace

int RefuseInCapture(const char* call) {
  if (!InvalidateCaptures()) return 0;
  return Fail(kCaptureUnsupported, Join(call, " while this thread captures a stream"));
}

int Malloc(void** memory, size_t bytes) {
  const Call call(CallKind::kMalloc);
  *memory = nullptr;
  if (call.error() != 0) return call.error();
  if (const int refused = RefuseInCapture("cudaMalloc")) return refused;
  if (TheOptions().devices.empty()) return Fail(cuda::kErrorNoDevice);
  if (bytes == 0) return 0;
  *memory = AllocateDevice(CurrentDevice(), bytes);
  if (*memory == nullptr) return Fail(cuda::kErrorMemoryAllocation);
  ++TheCounters().allocations;
  return 0;
}

int Free(void* memory) {
  const Call call(CallKind::kOther);
  if (call.Refused()) return call.error();
  if (const int refused = RefuseInCapture("cudaFree")) return refused;
  if (memory == nullptr) return 0;
  const Allocation* const a = FindDevice(memory);
  if (a == nullptr || a->memory != memory) {
    return Fail(kInvalidValue, "cudaFree of what cudaMalloc did not return, or of freed memory");
  }
  ++TheCounters().frees;
  ++TheCounters().synchronizations;
  FinishDevice(a->device);
  FreeDeviceMemory(memory);
  return Broken() != 0 ? Fail(Broken()) : 0;
}

int HostAlloc(void** memory, size_t bytes, unsigned flags) {
  const Call call(CallKind::kHostAlloc);
  *memory = nullptr;
  if (call.error() != 0) return call.error();
  if (const int refused = RefuseInCapture("cudaHostAlloc")) return refused;
  if (flags > 7) return Fail(kInvalidValue, Join("cudaHostAlloc: flags ", flags));
  if (bytes == 0) return 0;
  *memory = AllocateHost(bytes);
  if (*memory == nullptr) return Fail(cuda::kErrorMemoryAllocation);
  ++TheCounters().host_allocations;
  return 0;
}

int FreeHost(void* memory) {
  const Call call(CallKind::kOther);
  if (call.Refused()) return call.error();
  if (const int refused = RefuseInCapture("cudaFreeHost")) return refused;
  if (memory == nullptr) return 0;
  const Allocation* const a = FindHost(memory);
  if (a == nullptr || a->memory != memory || a->registered) {
    return Fail(kInvalidValue,
                "cudaFreeHost of what cudaHostAlloc did not return, or of freed memory");
  }
  ++TheCounters().host_frees;
  ++TheCounters().synchronizations;
  FinishDevice(-1);
  FreeHostMemory(memory);
  return Broken() != 0 ? Fail(Broken()) : 0;
}

int HostRegister(void* memory, size_t bytes, unsigned flags) {
  const Call call(CallKind::kHostAlloc);
  if (call.error() != 0) return call.error();
  if (const int refused = RefuseInCapture("cudaHostRegister")) return refused;
  if (flags > 7 || bytes == 0) return Fail(kInvalidValue, Join("cudaHostRegister: flags ", flags));
  if (IsDeviceAddress(memory) || !RegisterHost(memory, bytes)) {
    return Fail(kInvalidValue, "cudaHostRegister of memory that is page-locked, or of a device");
  }
  return 0;
}

int HostUnregister(void* memory) {
  const Call call(CallKind::kOther);
  if (call.Refused()) return call.error();
  if (const int refused = RefuseInCapture("cudaHostUnregister")) return refused;
  FinishDevice(-1);
  if (!UnregisterHost(memory)) {
    return Fail(kInvalidValue, "cudaHostUnregister of what was not registered");
  }
  return Broken() != 0 ? Fail(Broken()) : 0;
}

int MemcpyAsync(void* to, const void* from, size_t bytes, int kind, Stream stream) {
  const Call call(CallKind::kCopy);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaMemcpyAsync")) return error;
  if (bytes == 0) return 0;
  if (const int error = CheckCopy(to, from, bytes, kind)) return error;
  CountCopy(bytes);
  const bool pageable = (kind == cuda::kHostToDevice && FindHost(from) == nullptr) ||
                        (kind == cuda::kDeviceToHost && FindHost(to) == nullptr);
  if (pageable) {
    if (const int refused = RefusePageableInCapture(stream)) return refused;
    if (kind == cuda::kHostToDevice) return QueueStagedCopy(to, from, bytes, stream);
  }
  const auto count = static_cast<int64_t>(bytes);
  const Work copy{.run = [=] { std::memmove(to, from, bytes); },
                  .devices = DeviceOf(to) | DeviceOf(from),
                  .read_bytes = kind == cuda::kHostToDevice ? 0 : count,
                  .written_bytes = kind == cuda::kDeviceToHost ? 0 : count};
  if (const int error = Queue(stream, copy)) return error;
  if (!pageable) return 0;
  ++TheCounters().synchronizations;
  FinishStream(stream);
  return Broken() != 0 ? Fail(Broken()) : 0;
}

int MemsetAsync(void* memory, int value, size_t bytes, Stream stream) {
  const Call call(CallKind::kCopy);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaMemsetAsync")) return error;
  if (bytes == 0) return 0;
  if (const int error = CheckDeviceRange(memory, bytes, "cudaMemsetAsync")) return error;
  ++TheCounters().fills;
  return Queue(stream, {.run = [=] { std::memset(memory, value, bytes); },
                        .devices = DeviceOf(memory),
                        .written_bytes = static_cast<int64_t>(bytes)});
}

}  // namespace emulated_gpu::calls

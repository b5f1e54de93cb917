// Kernel launches.

#include <cstring>

#include "cuda/bindings/errors.h"
#include "support/emulated_gpu/block.h"
#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "support/emulated_gpu/touched.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu::calls {
namespace {

using trainer::Join;

uint64_t Count(dim3 n) { return uint64_t{n.x} * n.y * n.z; }
std::string Text(dim3 n) { return Join(n.x, " x ", n.y, " x ", n.z); }

int CheckSize(dim3 blocks, dim3 threads) {
  if (Count(blocks) == 0 || blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535) {
    return Fail(kInvalidConfiguration, Join("a kernel of ", Text(blocks), " blocks"));
  }
  if (Count(threads) == 0 || Count(threads) > 1024 || threads.z > 64) {
    return Fail(kInvalidConfiguration, Join("a kernel of ", Text(threads), " threads a block"));
  }
  return 0;
}

// The heap, stacks and libraries of a program are above it. AddressSanitizer's own memory is below
// it; two adjacent small numbers may look like an address there.
constexpr uintptr_t kLowestHost = uintptr_t{5} << 44;

// A kernel must get no host address except of page-locked memory. The first word is the kernel's
// own address. An uninitialised member may also look like an address: it should have a value.
void CheckParameters(const KernelLaunch& launch) {
  for (size_t at = sizeof(void*); at + sizeof(void*) <= launch.bytes; at += sizeof(void*)) {
    void* word;
    std::memcpy(&word, static_cast<const char*>(launch.parameters) + at, sizeof(word));
    const auto number = reinterpret_cast<uintptr_t>(word);
    if (number < kLowestHost || number >> 47 != 0 || !IsPageable(word)) continue;
    AddProblem(Join("a kernel of ", Text(launch.blocks), " blocks of ", Text(launch.threads),
                    " threads gets an address of the host, ", word, ", ", at - sizeof(void*),
                    " bytes into its parameters"));
  }
}

int Check(const KernelLaunch& launch) {
  const Stream stream = static_cast<Stream>(launch.stream);
  if (const int error = CheckStream(stream, "a kernel's launch")) return error;
  if (stream->device != CurrentDevice()) {
    return Fail(kInvalidResourceHandle, "a kernel's launch on a stream of another device");
  }
  if (const int error = CheckSize(launch.blocks, launch.threads)) return error;
  CheckParameters(launch);
  return 0;
}

bool RunCounted(const Kernel& kernel, int device) {
  if (!CountsBytes()) return RunKernel(kernel);
  const TouchedPages touched(1u << device);
  const bool good = RunKernel(kernel);
  TheCounters().read_bytes += touched.ReadBytes();
  TheCounters().written_bytes += touched.WrittenBytes();
  return good;
}

}  // namespace

void Launch(KernelLaunch launch) {
  const Call call(CallKind::kLaunch);
  const int error = call.error() != 0 ? call.error() : Check(launch);
  trainer::cuda::Check(error,
                       "starting a kernel on it");  // as CheckLaunch() of backend/loops/launch.h
  ++TheCounters().launches;
  const Stream stream = static_cast<Stream>(launch.stream);
  Kernel kernel{launch.blocks, launch.threads, std::move(launch.run)};
  Queue(stream, {.run =
                     [kernel = std::move(kernel), device = stream->device] {
                       if (!RunCounted(kernel, device)) Break(kLaunchFailure);
                     },
                 .devices = 1u << stream->device,
                 .blocks = Count(launch.blocks)});
}

}  // namespace emulated_gpu::calls

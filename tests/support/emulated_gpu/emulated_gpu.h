#pragma once
// A GPU in this process, for tests: it brings the table of the CUDA runtime (cuda/runtime.h), runs
// kernels that the host's compiler compiled, and is stricter than a GPU, so that mistakes show:
//
//   - Work that is queued runs late: only when something waits, in a random order among those that
//     streams and events allow. So do blocks, and threads between two barriers. The random numbers
//     depend on TRAINER_EMULATED_GPU_SEED in the environment (1), or on SetSeed.
//   - The host cannot read or write memory of the device: it dies of SIGSEGV behind a line on
//   stderr.
//     So does a kernel that leaves its allocations, by 256 bytes or more; less is found by Free, or
//     at once by AddressSanitizer. Memory of another device is nobody's.
//   - New memory is NaN, addresses of freed memory never come back.
//   - What a GPU would refuse, or take and do something that nobody wants (the null stream, an
//     address of the host as a kernel's parameter), is a sentence in Problems().
//
// Not emulated: races inside one kernel that no order of whole threads shows (lost updates without
// atomics), values of __shared__ variables before they are written, host memory that a kernel
// reaches by an address in memory.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulated_gpu {

struct DeviceOptions {
  std::string name = "Emulated GPU";
  size_t memory_bytes = size_t{1} << 30;
  int major = 8, minor = 0;  // compute capability
  int multiprocessors = 4;
};

// What NVML tells of every GPU of the machine.
struct NvmlOptions {
  bool there = false;
  unsigned busy = 90, memory_busy = 40;  // percent
  unsigned milliwatts = 300000, milliwatts_limit = 700000;
  unsigned long long millijoules = 0;  // since the driver was loaded
  unsigned celsius = 60, clock_mhz = 1900, most_clock_mhz = 1980;
  unsigned long long reasons = 0;  // of a lower clock, as in cuda/nvml.h
};

struct Options {
  std::vector<DeviceOptions> devices = {DeviceOptions{}};
  int first_bus = 1;                    // the PCI address of the first one; the others follow
  int driver = 13000, runtime = 13000;  // 0: there is none
  size_t cublas_lt_version = 130100, cudnn_version = 91900;
  // Whether the ReLU in cuDNN's fused convolution gives NaN for NaN if it is not asked to, and
  // whether it may be asked to (CUDNN_PROPAGATE_NAN).
  bool fused_relu_keeps_nan = true, fused_relu_propagates_nan = false;
  // The fused convolution needs so much more workspace than cuDNN reports for its algorithm.
  size_t fused_workspace = 0;
  NvmlOptions nvml = {};
};

// A new machine: no injected or sticky errors, no problems, counters of 0. What was queued is
// finished. Memory and streams live on where the device that they belong to does.
void Reset(const Options& options = {});
void SetSeed(uint64_t seed);

// What was wrong, one sentence each.
std::vector<std::string> Problems();
void ClearProblems();

enum class CallKind {
  kMalloc,
  kHostAlloc,
  kLaunch,
  kCopy,  // and memset
  kSynchronize,
  kCreate,   // of streams and events
  kCapture,  // and what else has to do with graphs
  kLibrary,  // cuBLASLt and cuDNN
  kOther,
  kKinds
};

// The n-th call of the kind from now on (from 0) returns `error` (cudaError_t) and does nothing.
void InjectError(CallKind kind, int n, int error);
// The n-th one succeeds, but what it queued breaks the device: from the next call that waits on,
// all calls return `error`, until Reset.
void InjectBreakdown(CallKind kind, int n, int error);
// All calls return `error` from now on.
void SetStickyError(int error);

// Calls of these libraries whose names begin so are refused as not supported, until Reset:
// "cudnnConvolutionBackward", or "cublasLt".
void RefuseLibraryCalls(const std::string& prefix);

// Kernels of more blocks are checked, queued and counted, and then do nothing: for counting what
// nets do that would take an emulated GPU minutes. Calls of cuBLASLt and cuDNN count as kernels of
// kManyBlocks. No bound at first (kManyBlocks).
inline constexpr uint64_t kManyBlocks = ~uint64_t{0};
void SetMostBlocks(uint64_t blocks);

// Whether it is counted what kernels read and write in memory of devices: the pages of 4096 bytes
// that each of them touches. Blocks then run in their order, and much slower. Not at first.
void CountBytes(bool on);

// Since Reset or ResetCounters.
struct Counters {
  int64_t launches = 0, copies = 0, copied_bytes = 0, fills = 0;
  int64_t allocations = 0, frees = 0, host_allocations = 0, host_frees = 0;
  // Calls that returned when work was done: waiting calls, Free and FreeHost, copies to pageable
  // memory. Not EventQuery and StreamQuery.
  int64_t synchronizations = 0;
  int64_t streams = 0, events = 0, event_records = 0, event_waits = 0;
  int64_t captures = 0, graph_launches = 0, calls_to_libraries = 0;
  int64_t done = 0;  // pieces of work that ran
  // In memory of devices: operands of copies, fills and libraries; by kernels see CountBytes.
  int64_t read_bytes = 0, written_bytes = 0;
};
Counters Count();
void ResetCounters();

size_t AllocatedBytes(int device = 0);
// What was allocated and not freed: "4096 bytes on device 0".
std::vector<std::string> Leaks();
// The memory of a device as the host may see it never: for tests that look at it. Waits for
// nothing.
void Peek(void* to, const void* device_memory, size_t bytes);

}  // namespace emulated_gpu

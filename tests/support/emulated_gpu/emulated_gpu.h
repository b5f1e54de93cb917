#pragma once
// A GPU in this process, for tests. It provides the table of the CUDA runtime (cuda/runtime.h),
// runs kernels that the host's compiler compiled, and is stricter than a GPU, so that mistakes
// show:
//
//   - Queued work runs late: only when something waits, in a random order that streams and events
//     allow. Blocks, and threads between two barriers, also run in a random order. The random
// numbers
//     depend on TRAINER_EMULATED_GPU_SEED in the environment (default 1), or on SetSeed.
//   - The host cannot read or write device memory: it dies of SIGSEGV after a line on stderr. So
// does
//     a kernel that leaves its allocations by 256 bytes or more; Free finds smaller errors, and
//     AddressSanitizer finds them at once. A kernel cannot access the memory of another device.
//   - New memory is NaN, and addresses of freed memory are never reused.
//   - Problems() lists what a GPU would refuse, or accept with an unwanted effect (the null stream,
//     a host address as a kernel's parameter), one sentence each.
//
// Not emulated: races inside one kernel that no order of whole threads shows (lost updates without
// atomics), values of __shared__ variables before they are written, and host memory that a kernel
// reaches through an address in memory.

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

// Values that NVML reports for every GPU of the machine.
struct NvmlOptions {
  bool there = false;
  unsigned busy = 90, memory_busy = 40;  // percent
  unsigned milliwatts = 300000, milliwatts_limit = 700000;
  unsigned long long millijoules = 0;  // since the driver was loaded
  unsigned celsius = 60, clock_mhz = 1900, most_clock_mhz = 1980;
  unsigned long long reasons = 0;  // why the clock is lowered, as in cuda/nvml.h
};

struct Options {
  std::vector<DeviceOptions> devices = {DeviceOptions{}};
  int first_bus = 1;                    // PCI bus of the first device; the others follow
  int driver = 13000, runtime = 13000;  // 0: none
  size_t cublas_lt_version = 130100, cudnn_version = 91900;
  // Whether the ReLU in cuDNN's fused convolution returns NaN for NaN by default, and whether the
  // caller may request that (CUDNN_PROPAGATE_NAN).
  bool fused_relu_keeps_nan = true, fused_relu_propagates_nan = false;
  // Bytes of workspace that the fused convolution needs beyond what cuDNN reports for its
  // algorithm.
  size_t fused_workspace = 0;
  NvmlOptions nvml = {};
};

// Starts a new machine: no injected or sticky errors, no problems, counters of 0. Queued work is
// finished first. Memory and streams remain valid if their device still exists.
void Reset(const Options& options = {});
void SetSeed(uint64_t seed);

// Returns the problems so far, one sentence each.
std::vector<std::string> Problems();
void ClearProblems();

enum class CallKind {
  kMalloc,
  kHostAlloc,
  kLaunch,
  kCopy,  // and memset
  kSynchronize,
  kCreate,   // of streams and events
  kCapture,  // and all other calls for graphs
  kLibrary,  // cuBLASLt and cuDNN
  kOther,
  kKinds
};

// Makes the n-th call of the kind from now on (from 0) return `error` (cudaError_t) and do nothing.
void InjectError(CallKind kind, int n, int error);
// Lets the n-th call succeed, but its queued work breaks the device: starting with the next call
// that waits, all calls return `error` until Reset.
void InjectBreakdown(CallKind kind, int n, int error);
// Makes all calls return `error` from now on.
void SetStickyError(int error);

// Refuses library calls whose names begin with `prefix` as not supported, until Reset: for example
// "cudnnConvolutionBackward" or "cublasLt".
void RefuseLibraryCalls(const std::string& prefix);

// Sets the most blocks of a kernel that runs. Larger kernels are checked, queued and counted, but
// do nothing: this counts the work of nets that would take an emulated GPU minutes. Calls of
// cuBLASLt and cuDNN count as kernels of kManyBlocks. The default is no limit (kManyBlocks).
inline constexpr uint64_t kManyBlocks = ~uint64_t{0};
void SetMostBlocks(uint64_t blocks);

// Turns on or off the counting of what kernels read and write in device memory: the pages of 4096
// bytes that each kernel touches. Blocks then run in order, and much slower. Off by default.
void CountBytes(bool on);

// Counts since the last Reset or ResetCounters.
struct Counters {
  int64_t launches = 0, copies = 0, copied_bytes = 0, fills = 0;
  int64_t allocations = 0, frees = 0, host_allocations = 0, host_frees = 0;
  // Calls that returned only when work was done: waiting calls, Free and FreeHost, copies to
  // pageable memory. EventQuery and StreamQuery do not count.
  int64_t synchronizations = 0;
  int64_t streams = 0, events = 0, event_records = 0, event_waits = 0;
  int64_t captures = 0, graph_launches = 0, calls_to_libraries = 0;
  int64_t done = 0;  // pieces of work that ran
  // Only device memory: operands of copies, fills and library calls. For kernels see CountBytes.
  int64_t read_bytes = 0, written_bytes = 0;
};
Counters Count();
void ResetCounters();

size_t AllocatedBytes(int device = 0);
// Returns what was allocated and not freed, for example "4096 bytes on device 0".
std::vector<std::string> Leaks();
// Copies device memory for tests that inspect it, because the host cannot access it. Does not wait
// for queued work.
void Peek(void* to, const void* device_memory, size_t bytes);

}  // namespace emulated_gpu

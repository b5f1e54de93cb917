#include "cuda/bindings/find_gpus.h"

#include <algorithm>
#include <cstdlib>

#include "cuda/bindings/errors.h"
#include "cuda/bindings/libraries.h"
#include "cuda/bindings/nccl.h"
#include "cuda/bindings/nvml.h"
#include "cuda/cuda_device.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

// The architectures that the kernels are compiled for, in CMake's format: "75-real 90a-real
// 90-virtual".
#ifndef TRAINER_CUDA_ARCHITECTURES
#define TRAINER_CUDA_ARCHITECTURES ""
#endif

namespace trainer::cuda {
namespace {

// Returns "75 80 90a, PTX" or "PTX": an architecture that ends in -virtual is PTX only, one that
// ends in -real has no PTX.
std::string Architectures() {
  std::vector<std::string> kernels;
  bool ptx = false;
  for (const std::string& one : SplitList(TRAINER_CUDA_ARCHITECTURES, ' ')) {
    ptx = ptx || !one.ends_with("-real");
    if (!one.ends_with("-virtual")) kernels.push_back(one.substr(0, one.find('-')));
  }
  const std::string list = JoinList(kernels, " ");
  return !ptx ? list : list.empty() ? "PTX" : list + ", PTX";
}

// Returns the oldest architecture that has kernels: 75; 0 if unknown.
int OldestArchitecture() {
  int oldest = 0;
  for (const std::string& one : SplitList(TRAINER_CUDA_ARCHITECTURES, ' ')) {
    const int number = std::atoi(one.c_str());
    oldest = oldest == 0 ? number : std::min(oldest, number);
  }
  return oldest;
}

// Returns a property of a GPU; 0 if the driver does not know it.
int GpuAttribute(int id, int attribute) {
  int value = 0;
  GetRuntime()->DeviceGetAttribute(&value, attribute, id);
  return value;
}

// Returns "0000:1b:00.0", or "".
std::string PciBusOf(int id) {
  char text[256] = "";
  return GetRuntime()->DeviceGetPciBusId(text, sizeof(text), id) == kSuccess ? text : "";
}

// Returns the properties that are available without a context on the GPU.
GpuInfo DescribeWithoutMemory(int id) {
  GpuInfo gpu;
  gpu.id = id;
  char text[256] = "";
  if (GetRuntime()->DeviceGetName(text, sizeof(text), id) == kSuccess) {
    gpu.name = EscapeControl(text);
  }
  gpu.pci_bus = PciBusOf(id);
  gpu.major = GpuAttribute(id, kAttributeComputeCapabilityMajor);
  gpu.minor = GpuAttribute(id, kAttributeComputeCapabilityMinor);
  gpu.multiprocessors = GpuAttribute(id, kAttributeMultiProcessorCount);
  gpu.clock_mhz = GpuAttribute(id, kAttributeClockRate) / 1000.0;
  gpu.memory_clock_mhz = GpuAttribute(id, kAttributeMemoryClockRate) / 1000.0;
  gpu.memory_bus_bits = GpuAttribute(id, kAttributeMemoryBusWidth);
  return gpu;
}

// Returns all properties. The memory sizes need a context on the GPU; they stay 0 if another
// process has exclusive use of it.
GpuInfo DescribeWithMemory(int id) {
  GpuInfo gpu = DescribeWithoutMemory(id);
  if (GetRuntime()->SetDevice(id) != kSuccess ||
      GetRuntime()->MemGetInfo(&gpu.free_bytes, &gpu.memory_bytes) != kSuccess) {
    GetRuntime()->GetLastError();
    gpu.free_bytes = gpu.memory_bytes = 0;
  }
  return gpu;
}

// Returns the properties of the first `count` GPUs. Does not change the thread's current GPU.
std::vector<GpuInfo> DescribeAll(int count) {
  int before = 0;
  GetRuntime()->GetDevice(&before);
  std::vector<GpuInfo> gpus;
  for (int id = 0; id < count; ++id) gpus.push_back(DescribeWithMemory(id));
  GetRuntime()->SetDevice(before);
  GetRuntime()->GetLastError();
  return gpus;
}

// Formats a list entry: "0: NVIDIA H200, 139 GiB, 138 GiB free".
std::string GpuListEntry(const GpuInfo& gpu) {
  if (gpu.memory_bytes == 0) return Join(gpu.id, ": ", gpu.name, ", in use");
  return Join(gpu.id, ": ", gpu.name, ", ", gpu.memory_bytes >> 30, " GiB, ", gpu.free_bytes >> 30,
              " GiB free");
}

// Throws kUnavailable for a GPU that does not exist, with a list of the `count` GPUs that exist.
[[noreturn]] void FailForMissingGpu(int id, int count) {
  std::vector<std::string> there;
  for (const GpuInfo& gpu : DescribeAll(count)) there.push_back(GpuListEntry(gpu));
  throw Error(ErrorCode::kUnavailable,
              Join("there is no GPU ", id, "; this program can see ", JoinList(there, "; ")));
}

// Throws kUnavailable if the GPU is older than the oldest one that the kernels are compiled for.
void CheckArchitecture(const GpuInfo& gpu) {
  const int oldest = OldestArchitecture();
  if (10 * gpu.major + gpu.minor >= oldest) return;
  throw Error(ErrorCode::kUnavailable,
              Join(GpuName(gpu.id), " has compute capability ", gpu.major, ".", gpu.minor,
                   ", older than those that this program is compiled for (", Architectures(),
                   "); choose another GPU, or build with -DCMAKE_CUDA_ARCHITECTURES=", gpu.major,
                   gpu.minor));
}

}  // namespace

GpuInfo GpuForUse(int id) {
  int count = 0;
  if (const int status = GetRuntime()->GetDeviceCount(&count); status != kSuccess) {
    GetRuntime()->GetLastError();
    throw Error(ErrorCode::kUnavailable, WhyNoGpu(status));
  }
  if (count == 0) throw Error(ErrorCode::kUnavailable, WhyNoGpu(kErrorNoDevice));
  if (id < 0 || id >= count) FailForMissingGpu(id, count);
  GpuInfo gpu = DescribeWithoutMemory(id);
  CheckArchitecture(gpu);
  UseGpu(id);
  Check(GetRuntime()->MemGetInfo(&gpu.free_bytes, &gpu.memory_bytes),
        "asking for its memory (cudaMemGetInfo)");
  BeginUse(id, gpu.name);
  return gpu;
}

std::string DescribeGpu(const GpuInfo& gpu) {
  return Join(gpu.name, ", ", gpu.memory_bytes >> 30, " GiB, compute ", gpu.major, ".", gpu.minor);
}

GpuSupport FindAll() {
  GpuSupport support;
  support.built = true;
  support.architectures = Architectures();
  GetRuntime()->DriverGetVersion(&support.driver);
  GetRuntime()->RuntimeGetVersion(&support.runtime);
  int count = 0;
  const int status = GetRuntime()->GetDeviceCount(&count);
  if (status != kSuccess || count == 0) {
    GetRuntime()->GetLastError();
    support.missing.push_back(WhyNoGpu(status == kSuccess ? kErrorNoDevice : status));
  } else {
    support.gpus = DescribeAll(count);
  }
  const Libraries libraries = OpenLibraries();
  support.cublas = libraries.cublas;
  support.cudnn = libraries.cudnn;
  if (!OpenNccl(&support.nccl).empty()) support.nccl.clear();
  support.nvml = DescribeNvml();
  for (const std::string& sentence : libraries.missing) support.missing.push_back(sentence);
  return support;
}

std::vector<std::string> ListAll() {
  int count = 0;
  if (GetRuntime()->GetDeviceCount(&count) != kSuccess) {
    GetRuntime()->GetLastError();
    return {};
  }
  std::vector<std::string> gpus;
  for (int id = 0; id < count; ++id) gpus.push_back(PciBusOf(id));
  return gpus;
}

std::unique_ptr<Device> MakeOne(const GpuOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

}  // namespace trainer::cuda

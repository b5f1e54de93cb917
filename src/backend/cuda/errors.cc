#include "cuda/errors.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "cuda/cublas_lt.h"
#include "cuda/cudnn.h"
#include "cuda/runtime.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cuda {
namespace {

// The GPUs in use: their names, which a lost one does not tell any more, and what each was lost of:
// the first reason, as later ones follow from it. A process cannot use it again.
class GpusInUse {
 public:
  static GpusInUse& Get() {
    static GpusInUse all;
    return all;
  }
  void Begin(int id, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_[id] = name;
    lost_.erase(id);
  }
  std::string NameOf(int id) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(id);
    return found == names_.end() ? "" : found->second;
  }
  std::string Lose(int id, const std::string& why) {
    const std::lock_guard lock(mutex_);
    return lost_.emplace(id, why).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::string> names_, lost_;
};

// "cudaErrorIllegalAddress: an illegal memory access was encountered"
std::string ErrorText(int status) {
  return Join(GetRuntime()->GetErrorName(status), ": ", GetRuntime()->GetErrorString(status));
}

std::string MiB(size_t bytes) { return Join(bytes >> 20, " MiB"); }

// What the simplest call returns: after an error that took the GPU away every call fails like it.
int StateOfGpu() {
  size_t free = 0, total = 0;
  const int status = GetRuntime()->MemGetInfo(&free, &total);
  GetRuntime()->GetLastError();
  return status;
}

std::string WhyLost(int status, int id, const std::string& what) {
  const std::string first =
      Join(GpuName(id), " failed while ", what, " or before: ", ErrorText(status),
           "; nothing more can be computed on it. ");
  if (status == kErrorEccUncorrectable) {
    return first +
           "Its memory is damaged ('nvidia-smi -q -d ECC' shows more): go on from the last "
           "snapshot on another GPU, and have this one reset";
  }
  return first +
         "Go on from the last snapshot with --resume=auto; if it happens again on this GPU "
         "and not on others, look for Xid lines in 'dmesg', else report it";
}

bool MeansNoGpu(int status) {
  switch (status) {
    case kErrorInitializationError:
    case kErrorStubLibrary:
    case kErrorInsufficientDriver:
    case kErrorNoDevice:
    case kErrorSystemNotReady:
    case kErrorSystemDriverMismatch:
    case kErrorCompatNotSupportedOnDevice:
      return true;
    default:
      return false;
  }
}

std::string Version(int number) { return Join(number / 1000, ".", number % 1000 / 10); }

std::string WhyNoDriver() {
  int driver = 0, runtime = 0;
  GetRuntime()->DriverGetVersion(&driver);
  GetRuntime()->RuntimeGetVersion(&runtime);
  if (driver == 0) {
    return "no driver for NVIDIA GPUs was found (libcuda.so.1); install one, or run on the CPU";
  }
  return Join("the driver of this machine's GPUs is made for CUDA ", Version(driver),
              " and this program needs ", Version(runtime),
              "; update the driver, build the program with an older CUDA, or run on the CPU");
}

}  // namespace

std::string GpuName(int id) {
  std::string name = GpusInUse::Get().NameOf(id);
  char text[256] = "";
  if (name.empty() && GetRuntime()->DeviceGetName(text, sizeof(text), id) == kSuccess) {
    name = EscapeControl(text);
  }
  return name.empty() ? Join("GPU ", id) : Join("GPU ", id, " (", name, ")");
}

std::string WhyNoGpu(int status) {
  if (status == kErrorInsufficientDriver || status == kErrorStubLibrary) return WhyNoDriver();
  if (status == kErrorNoDevice) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr) {
      return Join("CUDA sees no GPU, as CUDA_VISIBLE_DEVICES is '", EscapeControl(visible),
                  "'; name one that 'nvidia-smi -L' shows, or unset it");
    }
    return "the driver finds no GPU; see whether 'nvidia-smi' shows one and whether this job was "
           "given one, or run on the CPU";
  }
  if (status == kErrorSystemDriverMismatch) {
    return "the driver's parts are of several versions, as after an update without a restart; "
           "restart the machine, or load the new kernel module";
  }
  if (status == kErrorSystemNotReady) {
    return "the GPUs are not ready yet; start nvidia-fabricmanager where they are connected by "
           "NVSwitch, or wait";
  }
  return Join("CUDA does not start (", ErrorText(status),
              "); see whether 'nvidia-smi' works, or run on the CPU");
}

void Fail(int status, const std::string& what) {
  const int id = UsedGpu();
  GetRuntime()->GetLastError();  // so that it is not found again by another call
  if (MeansNoGpu(status)) throw Error(ErrorCode::kUnavailable, WhyNoGpu(status));
  if (status == kErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    GetRuntime()->MemGetInfo(&free, &total);
    throw Error(ErrorCode::kResource,
                Join(GpuName(id), " had no memory left while ", what, ": ", MiB(free), " of ",
                     MiB(total), " are free; lower batch_size or store values in 16 bits"));
  }
  if (status == kErrorDevicesUnavailable) {
    throw Error(ErrorCode::kUnavailable,
                Join(GpuName(id),
                     " is in use by another process and takes no second one, or is "
                     "busy; choose another, or wait ('nvidia-smi' shows who uses it)"));
  }
  if (status == kErrorNoKernelImageForDevice || status == kErrorUnsupportedPtxVersion) {
    throw Error(ErrorCode::kUnavailable,
                Join(GpuName(id), " cannot run this program's kernels (", ErrorText(status),
                     "); build it for this GPU with -DCMAKE_CUDA_ARCHITECTURES=native, or update "
                     "the driver"));
  }
  if (StateOfGpu() == status) {
    throw Error(ErrorCode::kUnavailable, GpusInUse::Get().Lose(id, WhyLost(status, id, what)));
  }
  throw Error(ErrorCode::kInternal, Join(GpuName(id), " refused ", what, " (", ErrorText(status),
                                         "), which is a mistake of this program: report it"));
}

void FailToAllocate(int status, size_t bytes) {
  if (status != kErrorMemoryAllocation) Fail(status, "allocating its memory (cudaMalloc)");
  GetRuntime()->GetLastError();
  size_t free = 0, total = 0;
  GetRuntime()->MemGetInfo(&free, &total);
  throw Error(
      ErrorCode::kResource,
      Join(GpuName(UsedGpu()), " has no ", MiB(bytes), " (", bytes,
           " bytes) of memory left: ", MiB(free), " of ", MiB(total),
           " are free; lower batch_size, store values in 16 bits, or end what else uses it"));
}

void FailCublasLt(int status, const char* what) {
  const int id = UsedGpu();
  if (status == cublas_lt::kAllocFailed) Fail(kErrorMemoryAllocation, what);
  // A library notices what went wrong before it; the runtime knows what that was.
  if (const int before = StateOfGpu(); before != kSuccess) Fail(before, what);
  throw Error(ErrorCode::kInternal,
              Join("cuBLASLt failed on ", GpuName(id), " while ", what, ": ",
                   GetCublasLt()->GetStatusString(status), " (status ", status, ")"));
}

void FailCudnn(int status, const char* what) {
  const int id = UsedGpu();
  if (status == cudnn::kHostAllocationFailed || status == cudnn::kDeviceAllocationFailed) {
    Fail(kErrorMemoryAllocation, what);
  }
  if (const int before = StateOfGpu(); before != kSuccess) Fail(before, what);
  char more[512] = "";
  GetCudnn()->GetLastErrorString(more, sizeof(more));
  throw Error(ErrorCode::kInternal, Join("cuDNN failed on ", GpuName(id), " while ", what, ": ",
                                         GetCudnn()->GetErrorString(status),
                                         more[0] == '\0' ? "" : ", ", EscapeControl(more)));
}

void BeginUse(int id, const std::string& name) { GpusInUse::Get().Begin(id, name); }

}  // namespace trainer::cuda

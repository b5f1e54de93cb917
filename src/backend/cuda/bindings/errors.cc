#include "cuda/bindings/errors.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "cuda/bindings/runtime.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

// The GPUs in use: their names, which a lost GPU no longer reports, and the first reason why each
// was lost, because later errors follow from it. The process cannot use a lost GPU again.
class GpusInUse {
 public:
  static GpusInUse& Get() {
    static GpusInUse all;
    return all;
  }
  // Enters the name of a GPU that works, and forgets that it was lost before.
  void Begin(int id, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_[id] = name;
    lost_.erase(id);
  }
  // Returns the name of a GPU that was entered, else "".
  std::string NameOf(int id) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(id);
    return found == names_.end() ? "" : found->second;
  }
  // Marks a GPU as lost. Returns the reason of its first loss, which is `why` if there was none
  // before.
  std::string Lose(int id, const std::string& why) {
    const std::lock_guard lock(mutex_);
    return lost_.emplace(id, why).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::string> names_, lost_;
};

// Returns "cudaErrorIllegalAddress: an illegal memory access was encountered".
std::string ErrorText(int status) {
  return Join(GetRuntime()->GetErrorName(status), ": ", GetRuntime()->GetErrorString(status));
}

std::string MiB(size_t bytes) { return Join(bytes >> 20, " MiB"); }

// Returns the status of a simple call, which shows whether the GPU still works: after an error that
// made it unusable, every call fails with that error.
int StateOfGpu() {
  size_t free = 0, total = 0;
  const int status = GetRuntime()->MemGetInfo(&free, &total);
  GetRuntime()->GetLastError();
  return status;
}

// Returns the message for a GPU that was lost with `status` while `what`, with advice.
std::string WhyLost(int status, int id, const std::string& what) {
  const std::string first =
      Join(GpuName(id), " failed while ", what, " or before: ", ErrorText(status),
           "; this process cannot use it any more. ");
  if (status == kErrorEccUncorrectable) {
    return first +
           "Its memory has an error ('nvidia-smi -q -d ECC' shows more): resume from the last "
           "snapshot on another GPU, and ask the administrator to reset this one";
  }
  return first +
         "Resume from the last snapshot with --resume=auto. If this happens again on this GPU but "
         "not on others, check 'dmesg' for lines with Xid; else report it";
}

// Returns whether a status means that CUDA cannot start or finds no GPU.
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

// Formats a version of CUDA: 13010 is "13.1".
std::string CudaVersionText(int number) { return Join(number / 1000, ".", number % 1000 / 10); }

// Returns what is wrong with the driver: none, or older than this program needs.
std::string WhyNoDriver() {
  int driver = 0, runtime = 0;
  GetRuntime()->DriverGetVersion(&driver);
  GetRuntime()->RuntimeGetVersion(&runtime);
  if (driver == 0) {
    return "no driver for NVIDIA GPUs was found (libcuda.so.1); install one, or run on the CPU";
  }
  return Join("the GPU driver of this machine supports CUDA ", CudaVersionText(driver),
              ", but this program needs ", CudaVersionText(runtime),
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
      return Join("CUDA sees no GPU, because CUDA_VISIBLE_DEVICES is '", EscapeControl(visible),
                  "'; set it to a GPU that 'nvidia-smi -L' shows, or unset it");
    }
    return "the driver finds no GPU; check that 'nvidia-smi' shows a GPU and that this job "
           "requested one, or run on the CPU";
  }
  if (status == kErrorSystemDriverMismatch) {
    return "the parts of the GPU driver have different versions, maybe after an update without a "
           "restart; restart the machine, or load the new kernel module";
  }
  if (status == kErrorSystemNotReady) {
    return "the GPUs are not ready yet; wait, or start nvidia-fabricmanager if they are connected "
           "by NVSwitch";
  }
  return Join("CUDA does not start (", ErrorText(status),
              "); check that 'nvidia-smi' works, or run on the CPU");
}

void Fail(int status, const std::string& what) {
  const int id = UsedGpu();
  GetRuntime()->GetLastError();  // clears the error, so that no later call reports it
  if (MeansNoGpu(status)) throw Error(ErrorCode::kUnavailable, WhyNoGpu(status));
  if (status == kErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    GetRuntime()->MemGetInfo(&free, &total);
    throw Error(ErrorCode::kResource,
                Join(GpuName(id), " ran out of memory while ", what, ": ", MiB(free), " of ",
                     MiB(total), " are free; lower batch_size or store values in 16 bits"));
  }
  if (status == kErrorDevicesUnavailable) {
    throw Error(ErrorCode::kUnavailable,
                Join(GpuName(id),
                     " is busy, or another process has exclusive use of it; choose another GPU, or "
                     "wait ('nvidia-smi' shows the processes)"));
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
                                         "); this is a bug in this program, please report it"));
}

void FailToAllocate(int status, size_t bytes) {
  if (status != kErrorMemoryAllocation) Fail(status, "allocating its memory (cudaMalloc)");
  GetRuntime()->GetLastError();
  size_t free = 0, total = 0;
  GetRuntime()->MemGetInfo(&free, &total);
  throw Error(ErrorCode::kResource,
              Join(GpuName(UsedGpu()), " cannot allocate ", MiB(bytes), " (", bytes,
                   " bytes) of memory: ", MiB(free), " of ", MiB(total),
                   " are free; lower batch_size, store values in 16 bits, or stop other programs "
                   "on this GPU"));
}

void FailCublasLt(int status, const char* what) {
  const int id = UsedGpu();
  if (status == cublas_lt::kAllocFailed) Fail(kErrorMemoryAllocation, what);
  // The library may report an earlier failure, whose cause the runtime knows.
  if (const int before = StateOfGpu(); before != kSuccess) Fail(before, what);
  throw Error(ErrorCode::kInternal,
              Join("cuBLASLt failed on ", GpuName(id), " while ", what, ": ",
                   GetCublasLt()->GetStatusString(status), " (status ", status, ")"));
}

// Throws for an earlier failure, if there is one whose cause the runtime knows: the library may
// report it.
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

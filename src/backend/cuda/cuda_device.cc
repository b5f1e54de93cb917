#include "cuda/cuda_device.h"

#include <glog/logging.h>

#include "conv_kernels.h"
#include "cuda/bindings/errors.h"
#include "cuda/bindings/find_gpus.h"
#include "cuda/bindings/libraries.h"
#include "cuda/bindings/nvml.h"
#include "cuda/capture.h"
#include "cuda/conv/algorithm.h"
#include "cuda/copy_stream.h"
#include "cuda/ops.h"
#include "cuda/pinned_memory.h"
#include "cuda/plans.h"
#include "desc_checks.h"

namespace trainer::cuda {
namespace {

// Returns "9.19.0" for 91900, as cuBLASLt and cuDNN number their versions.
std::string LibraryVersionText(size_t version) {
  return Join(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace

CudaDevice::CudaDevice(const GpuOptions& options) : options_(options) {
  const GpuInfo gpu = GpuForUse(options.id);
  description_ = DescribeGpu(gpu);
  model_ = Join(gpu.name, ", ", gpu.multiprocessors, " multiprocessors");
  pinned_ = std::make_unique<PinnedMemoryResource>(options.id);
  conv_algorithms_ = std::make_unique<ConvAlgorithms>(*this);
  for (const std::string& sentence : OpenLibraries().missing) LOG(WARNING) << sentence << '.';
  try {
    Check(GetRuntime()->StreamCreateWithFlags(&stream_, kStreamNonBlocking),
          "making its queue (cudaStreamCreate)");
    partials_ = static_cast<float*>(Allocate(kReductionScratch * sizeof(float)));
  } catch (...) {
    Release();
    throw;
  }
}

CudaDevice::~CudaDevice() { Release(); }

std::vector<std::pair<std::string, std::string>> CudaDevice::LibraryVersions() const {
  int runtime = 0;
  GetRuntime()->RuntimeGetVersion(&runtime);
  std::vector<std::pair<std::string, std::string>> versions = {
      {"GPU driver", DriverVersion()},
      {"CUDA runtime", Join(runtime / 1000, ".", runtime % 1000 / 10)}};
  if (GetCublasLt() != nullptr) {
    versions.emplace_back("cuBLASLt", LibraryVersionText(GetCublasLt()->GetVersion()));
  }
  if (GetCudnn() != nullptr) {
    versions.emplace_back("cuDNN", LibraryVersionText(GetCudnn()->GetVersion()));
  }
  return versions;
}

// Waits for all work and frees everything. A lost GPU refuses these calls; the driver then frees
// its resources when the process ends.
void CudaDevice::Release() noexcept {
  const Runtime& runtime = *GetRuntime();
  int now = -1;
  runtime.GetDevice(&now);
  if (now != options_.id) runtime.SetDevice(options_.id);
  if (stream_ != nullptr) runtime.StreamSynchronize(stream_);
  if (cudnn_ != nullptr) GetCudnn()->Destroy(cudnn_);
  if (cublas_lt_ != nullptr) GetCublasLt()->Destroy(cublas_lt_);
  if (partials_ != nullptr) runtime.Free(partials_);
  pinned_.reset();
  if (stream_ != nullptr) runtime.StreamDestroy(stream_);
  runtime.GetLastError();
}

cublas_lt::Handle CudaDevice::CublasLtHandle() const {
  if (cublas_lt_ == nullptr && GetCublasLt() != nullptr) {
    Use();
    CheckCublasLt(GetCublasLt()->Create(&cublas_lt_), "starting (cublasLtCreate)");
  }
  return cublas_lt_;
}

cudnn::Handle CudaDevice::CudnnHandle() const {
  if (cudnn_ == nullptr && GetCudnn() != nullptr) {
    Use();
    CheckCudnn(GetCudnn()->Create(&cudnn_), "starting (cudnnCreate)");
    CheckCudnn(GetCudnn()->SetStream(cudnn_, stream_), "choosing its queue (cudnnSetStream)");
  }
  return cudnn_;
}

size_t CudaDevice::AvailableBytes() const {
  Use();
  size_t free = 0, total = 0;
  Check(GetRuntime()->MemGetInfo(&free, &total), "asking for its free memory (cudaMemGetInfo)");
  return free;
}

void* CudaDevice::Allocate(size_t bytes) const {
  Use();
  void* memory = nullptr;
  // cudaMalloc returns a null pointer for 0 bytes.
  const size_t size = bytes == 0 ? 1 : bytes;
  if (const int status = GetRuntime()->Malloc(&memory, size); status != kSuccess) {
    FailToAllocate(status, size);
  }
  return memory;
}

// cudaFree waits for the work that still uses the memory. Errors are reported by the next call that
// may throw.
void CudaDevice::Free(void* memory) const {
  if (memory == nullptr) return;
  Use();
  GetRuntime()->Free(memory);
}

// From pageable memory the driver makes a copy of its own before it returns. From page-locked
// memory the GPU reads later, so the call must wait.
void CudaDevice::CopyToDevice(void* to, const void* host, size_t bytes) const {
  if (bytes == 0) return;
  Use();
  Check(GetRuntime()->MemcpyAsync(to, host, bytes, kHostToDevice, stream_),
        "copying to it (cudaMemcpyAsync)");
  if (pinned_->Holds(host)) Synchronize();
}

// Queues the copy and waits for the stream.
void CudaDevice::CopyToHost(void* host, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  Use();
  Check(GetRuntime()->MemcpyAsync(host, from, bytes, kDeviceToHost, stream_),
        "copying from it (cudaMemcpyAsync)");
  Synchronize();
}

void CudaDevice::Memset(void* memory, unsigned char value, size_t bytes) const {
  if (bytes == 0) return;
  Use();
  Check(GetRuntime()->MemsetAsync(memory, value, bytes, stream_),
        "filling its memory (cudaMemsetAsync)");
}

void CudaDevice::Synchronize() const {
  Use();
  Check(GetRuntime()->StreamSynchronize(stream_), "waiting for it (cudaStreamSynchronize)");
}

// Makes this GPU the current one: called before each launch, because a launch goes to the current
// GPU of the calling thread.
void* CudaDevice::Stream() const {
  Use();
  return stream_;
}

std::pmr::memory_resource& CudaDevice::PinnedMemory() const { return *pinned_; }
std::unique_ptr<CopyStream> CudaDevice::NewCopyStream() const { return MakeCopyStream(*this); }
std::unique_ptr<AsyncReadback> CudaDevice::NewReadback() const { return MakeReadback(*this); }
std::unique_ptr<CapturedGraph> CudaDevice::Capture(const std::function<void()>& queue) const {
  return CaptureGraph(*this, queue);
}
std::unique_ptr<CapturedEvent> CudaDevice::NewEvent() const { return MakeGraphMark(*this); }

std::unique_ptr<GemmPrimitive> CudaDevice::NewGemm(const GemmDesc& desc) const {
  CheckGemm(desc);
  return ChoosePrimitive<GemmPrimitive>(*this, desc, "matrix product");
}
std::unique_ptr<ConvPrimitive> CudaDevice::NewConv(const ConvDesc& desc) const {
  CheckConv(desc);
  return ChooseConv(*this, desc);
}
std::unique_ptr<PoolPrimitive> CudaDevice::NewPool(const PoolDesc& desc) const {
  CheckPool(desc);
  return ChoosePrimitive<PoolPrimitive>(*this, desc, "pooling");
}
std::unique_ptr<BatchNormPrimitive> CudaDevice::NewBatchNorm(const BatchNormDesc& desc) const {
  CheckBatchNorm(desc);
  return cuda::NewBatchNorm(*this, desc);
}
std::unique_ptr<LrnPrimitive> CudaDevice::NewLrn(const LrnDesc& desc) const {
  CheckLrn(desc);
  return ChoosePrimitive<LrnPrimitive>(*this, desc, "LRN");
}
std::unique_ptr<SoftmaxPrimitive> CudaDevice::NewSoftmax(const SoftmaxDesc& desc) const {
  CheckSoftmax(desc);
  return cuda::NewSoftmax(*this, desc);
}
std::unique_ptr<AttentionPrimitive> CudaDevice::NewAttention(const AttentionDesc& desc) const {
  CheckAttention(desc);
  return cuda::NewAttention(*this, desc);
}

void CudaDevice::Copy(const CopyDesc& desc, const void* from, void* to) const {
  cuda::Copy(*this, desc, from, to);
}
void CudaDevice::Convert(const ConstTensor& from, const Tensor& to) const {
  cuda::Convert(*this, from, to);
}
void CudaDevice::AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x,
                                const ConstTensor* times, float* to) const {
  cuda::AddChannelSums(*this, desc, x, times, to);
}
// Takes one pass only if channels are neighbours in memory, as in images.
bool CudaDevice::ReluGradAndBiasGrad(const ChannelSumsDesc& desc, const ConstTensor& dy,
                                     const ConstTensor& y, const Tensor& g, float* to) const {
  if (desc.inner != 1) return false;
  cuda::ReluGradAndBiasGrad(*this, desc, dy, y, g, to);
  return true;
}

}  // namespace trainer::cuda

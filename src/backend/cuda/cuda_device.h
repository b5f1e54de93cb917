#pragma once
// The Device that computes on a GPU.

#include <memory>
#include <string>

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "cuda/bindings/runtime.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/backend/device/graph_capture.h"

namespace trainer::cuda {

class PinnedMemoryResource;
class ConvAlgorithms;

// All calls are queued on one stream. See Device.
class CudaDevice final : public Device, public GraphCapture {
 public:
  // Throws the same errors as MakeGpuDevice.
  explicit CudaDevice(const GpuOptions& options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const GpuOptions& options() const { return options_; }
  cuda::Stream stream() const { return stream_; }
  // Returns the handle of cuBLASLt, created at the first call; null if the library was not found.
  cublas_lt::Handle CublasLtHandle() const;
  // Returns the handle of cuDNN, which queues on this device's stream, created at the first call;
  // null if the library was not found.
  cudnn::Handle CudnnHandle() const;
  // Returns the algorithms chosen for convolutions, so that convolutions of the same shape are
  // measured once.
  ConvAlgorithms& conv_algorithms() const { return *conv_algorithms_; }
  // Makes this GPU the current device of the calling thread.
  void Use() const { UseGpu(options_.id); }

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  bool SupportsDtype(DType) const override { return true; }
  // "NVIDIA H200, 139 GiB, compute 9.0"
  std::string Describe() const override { return description_; }
  std::vector<std::pair<std::string, std::string>> LibraryVersions() const override;
  // Returns a key that is equal for GPUs of the same kind, and for partitions of a GPU with the
  // same size.
  const std::string& Model() const { return model_; }
  size_t AvailableBytes() const override;

  void* Allocate(size_t bytes) const override;
  void Free(void* memory) const override;
  void CopyToDevice(void* to, const void* host, size_t bytes) const override;
  void CopyToHost(void* host, const void* from, size_t bytes) const override;
  void Memset(void* memory, unsigned char value, size_t bytes) const override;
  void Synchronize() const override;
  void* Stream() const override;
  float* ReductionScratch() const override { return partials_; }

  std::pmr::memory_resource& PinnedMemory() const override;
  std::unique_ptr<CopyStream> NewCopyStream() const override;
  std::unique_ptr<AsyncReadback> NewReadback() const override;

  const GraphCapture* capture() const override { return options_.graphs ? this : nullptr; }
  std::unique_ptr<CapturedGraph> Capture(const std::function<void()>& queue) const override;
  std::unique_ptr<CapturedEvent> NewEvent() const override;

  std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& desc) const override;
  std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const override;
  std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& desc) const override;
  std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const override;
  std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& desc) const override;
  std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) const override;
  std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc) const override;
  void Copy(const CopyDesc& desc, const void* from, void* to) const override;
  void Convert(const ConstTensor& from, const Tensor& to) const override;
  void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                      float* to) const override;
  bool ReluGradAndBiasGrad(const ChannelSumsDesc& desc, const ConstTensor& dy, const ConstTensor& y,
                           const Tensor& g, float* to) const override;

 private:
  void Release() noexcept;

  GpuOptions options_;
  std::string description_, model_;
  cuda::Stream stream_ = nullptr;
  float* partials_ = nullptr;
  std::unique_ptr<PinnedMemoryResource> pinned_;
  std::unique_ptr<ConvAlgorithms> conv_algorithms_;
  mutable cublas_lt::Handle cublas_lt_ = nullptr;
  mutable cudnn::Handle cudnn_ = nullptr;
};

// Implements FindGpus of device/gpu.h. Needs the CUDA runtime.
GpuSupport FindAll();
// Implements MakeGpuDevice of device/gpu.h.
std::unique_ptr<Device> MakeOne(const GpuOptions& options);
// Implements ListGpus of device/gpu.h.
std::vector<std::string> ListAll();

}  // namespace trainer::cuda

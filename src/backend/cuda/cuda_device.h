#pragma once
// A GPU as a Device.

#include <memory>
#include <string>

#include "cuda/cublas_lt.h"
#include "cuda/cudnn.h"
#include "cuda/runtime.h"
#include "trainer/backend/gpu.h"
#include "trainer/backend/masks_and_sums.h"
#include "trainer/backend/recording.h"

namespace trainer::cuda {

class PinnedMemory;
class ConvAlgorithms;

class CudaDevice final : public Device, public Recorder, public MasksAndSums {
 public:
  // Throws as MakeGpuDevice does.
  explicit CudaDevice(const GpuOptions& options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const GpuOptions& options() const { return options_; }
  cuda::Stream stream() const { return stream_; }
  // The libraries' handles, made at the first call; null where there is no library.
  cublas_lt::Handle CublasLtHandle() const;
  cudnn::Handle CudnnHandle() const;
  // What was chosen for convolutions, so that two of one shape are measured once.
  ConvAlgorithms& conv_algorithms() const { return *conv_algorithms_; }
  // Makes this GPU the calling thread's.
  void Use() const { UseGpu(options_.id); }

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  bool Stores(DType) const override { return true; }
  // "NVIDIA H200, 139 GiB, compute 9.0"
  std::string Describe() const override { return description_; }
  // What one GPU has in common with others of its kind, and parts of a GPU with parts of that size.
  const std::string& Model() const { return model_; }
  size_t FreeBytes() const override;

  void* Allocate(size_t bytes) const override;
  void Free(void* memory) const override;
  void CopyToDevice(void* to, const void* host, size_t bytes) const override;
  void CopyToHost(void* host, const void* from, size_t bytes) const override;
  void Fill(void* memory, unsigned char value, size_t bytes) const override;
  void Synchronize() const override;
  void* Stream() const override;
  float* Partials() const override { return partials_; }

  std::pmr::memory_resource& HostMemory() const override;
  std::unique_ptr<CopyQueue> MakeCopyQueue() const override;
  std::unique_ptr<HostRead> MakeHostRead() const override;

  bool Records() const override { return options_.graphs; }
  std::unique_ptr<Recording> Record(const std::function<void()>& queue) const override;
  std::unique_ptr<RecordedMark> MakeMark() const override;

  std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& desc) const override;
  std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc) const override;
  std::unique_ptr<PoolPlan> MakePool(const PoolDesc& desc) const override;
  std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& desc) const override;
  std::unique_ptr<LrnPlan> MakeLrn(const LrnDesc& desc) const override;
  std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& desc) const override;
  void Copy(const CopyDesc& desc, const void* from, void* to) const override;
  void Convert(const ConstTensor& from, const Tensor& to) const override;
  void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                      float* to) const override;
  bool MaskAndAddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& dy,
                             const ConstTensor& y, const Tensor& g, float* to) const override;

 private:
  void Release() noexcept;

  GpuOptions options_;
  std::string description_, model_;
  cuda::Stream stream_ = nullptr;
  float* partials_ = nullptr;
  std::unique_ptr<PinnedMemory> pinned_;
  std::unique_ptr<ConvAlgorithms> conv_algorithms_;
  mutable cublas_lt::Handle cublas_lt_ = nullptr;
  mutable cudnn::Handle cudnn_ = nullptr;
};

// What gpu.h declares, where there is a runtime.
GpuSupport FindAll();
std::unique_ptr<Device> MakeOne(const GpuOptions& options);
std::vector<std::string> ListAll();

}  // namespace trainer::cuda

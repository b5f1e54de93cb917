#include "trainer/backend/device/meta_device.h"

#include <limits>

#include "batch_norm_math.h"
#include "desc_checks.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Throws kInternal. Called by everything that would compute.
[[noreturn]] void FailToCompute() {
  throw Error(ErrorCode::kInternal, "a device that only plans was asked to compute");
}

constexpr const char* kPlanDeviceName = "planned only";

// Needs no scratch: cuBLASLt's workspace is part of kGpuContextBytes.
class PlannedGemm final : public GemmPrimitive {
 public:
  std::string kernel() const override { return kPlanDeviceName; }
  void Run(const void*, const void*, const float*, void*, std::span<std::byte>) override {
    FailToCompute();
  }
};

// Estimates the scratch that cuDNN needs: a copy of the weights in its order, and its workspace.
// The real size depends on cuDNN's version, the GPU and the algorithm, and may be half or twice as
// much.
size_t EstimatedConvScratch(const ConvDesc& desc) {
  const auto bytes = [&](const Shape& shape) {
    return static_cast<size_t>(shape.Count()) * SizeOf(desc.dtype);
  };
  // cuDNN needs the weights in its own order and type, and partial sums of their gradient if a few
  // weights are used at many pixels.
  constexpr size_t kPartialSums = 4;
  const auto weights = static_cast<size_t>(desc.WeightShape().Count()) * sizeof(float);
  // Kernels for f32 read some tensors in another order and copy them first.
  const size_t copies =
      desc.dtype == DType::kF32 ? bytes(desc.InShape()) + bytes(desc.OutShape()) : 0;
  return (1 + kPartialSums) * weights + copies;
}

// Needs the scratch of EstimatedConvScratch.
class PlannedConv final : public ConvPrimitive {
 public:
  explicit PlannedConv(const ConvDesc& desc) : scratch_(EstimatedConvScratch(desc)) {}
  std::string kernel() const override { return kPlanDeviceName; }
  size_t ScratchBytes() const override { return scratch_; }
  void Forward(ConstTensor, const float*, const float*, Tensor, std::span<std::byte>) override {
    FailToCompute();
  }
  void BackwardWeight(ConstTensor, ConstTensor, float*, float*, std::span<std::byte>) override {
    FailToCompute();
  }
  void BackwardData(ConstTensor, const float*, Tensor, std::span<std::byte>) override {
    FailToCompute();
  }

 private:
  size_t scratch_;
};

// The workspace holds the winner of each window as 32 bits.
class PlannedPool final : public PoolPrimitive {
 public:
  explicit PlannedPool(const PoolDesc& desc)
      : workspace_(desc.method == PoolMethod::kAverage || !desc.training
                       ? 0
                       : static_cast<size_t>(desc.OutShape().Count()) * sizeof(int32_t)) {}
  std::string kernel() const override { return kPlanDeviceName; }
  size_t WorkspaceBytes() const override { return workspace_; }
  void Forward(ConstTensor, Tensor, std::span<std::byte>) override { FailToCompute(); }
  void Backward(ConstTensor, Tensor, std::span<const std::byte>) override { FailToCompute(); }
  void ArgMax(std::span<const std::byte>, Tensor) override { FailToCompute(); }

 private:
  size_t workspace_;
};

// Needs the same memory as the batch normalisation of a GPU.
class PlannedBatchNorm final : public BatchNormPrimitive {
 public:
  explicit PlannedBatchNorm(const BatchNormDesc& desc) : pixels_(GpuChunks(desc.shape)) {}
  std::string kernel() const override { return kPlanDeviceName; }
  size_t WorkspaceBytes() const override { return BatchNormWorkspace(pixels_); }
  size_t ScratchBytes() const override { return BatchNormScratch(pixels_); }
  BatchNormStats StatsIn(std::span<std::byte>) const override { FailToCompute(); }
  void Moments(ConstTensor, const BatchNormStats&, std::span<std::byte>) override {
    FailToCompute();
  }
  void Forward(const BatchNormTensors&, const BatchNormStats&) override { FailToCompute(); }
  void Recompute(const BatchNormTensors&, const BatchNormStats&) override { FailToCompute(); }
  void Backward(const BatchNormGradients&, const BatchNormStats&, std::span<std::byte>) override {
    FailToCompute();
  }

 private:
  PixelChunks pixels_;
};

// The workspace holds the base of each power as a float.
class PlannedLrn final : public LrnPrimitive {
 public:
  explicit PlannedLrn(const LrnDesc& desc)
      : workspace_(static_cast<size_t>(desc.shape.Count()) * sizeof(float)) {}
  std::string kernel() const override { return kPlanDeviceName; }
  size_t WorkspaceBytes() const override { return workspace_; }
  void Forward(ConstTensor, Tensor, std::span<std::byte>) override { FailToCompute(); }
  void Backward(ConstTensor, ConstTensor, Tensor, std::span<const std::byte>,
                std::span<std::byte>) override {
    FailToCompute();
  }

 private:
  size_t workspace_;
};

// Needs no memory, like the softmax of a GPU.
class PlannedSoftmax final : public SoftmaxPrimitive {
 public:
  std::string kernel() const override { return kPlanDeviceName; }
  void Forward(ConstTensor, Tensor) override { FailToCompute(); }
  void Backward(ConstTensor, ConstTensor, Tensor) override { FailToCompute(); }
};

// Requests the scratch that a GPU needs: a float per row of scores.
class PlannedAttention final : public AttentionPrimitive {
 public:
  explicit PlannedAttention(const AttentionDesc& desc)
      : scratch_(static_cast<size_t>(desc.LogSums()) * sizeof(float)) {}
  std::string kernel() const override { return kPlanDeviceName; }
  size_t ScratchBytes() const override { return scratch_; }
  void Forward(const float*, float*, float*, std::span<std::byte>) override { FailToCompute(); }
  void Backward(const AttentionSaved&, float*, std::span<std::byte>) override { FailToCompute(); }

 private:
  size_t scratch_;
};

// Describes itself as a GPU with unlimited memory. Everything that would compute throws.
class MetaDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string Describe() const override { return "a GPU, planned only"; }
  bool SupportsDtype(DType) const override { return true; }
  size_t AvailableBytes() const override { return std::numeric_limits<size_t>::max() / 2; }

  void* Allocate(size_t) const override { FailToCompute(); }
  void Free(void*) const override {}
  void CopyToDevice(void*, const void*, size_t) const override { FailToCompute(); }
  void CopyToHost(void*, const void*, size_t) const override { FailToCompute(); }
  void Memset(void*, unsigned char, size_t) const override { FailToCompute(); }
  void Synchronize() const override {}

  std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& desc) const override {
    CheckGemm(desc);
    return std::make_unique<PlannedGemm>();
  }
  std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const override {
    CheckConv(desc);
    return std::make_unique<PlannedConv>(desc);
  }
  std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& desc) const override {
    CheckPool(desc);
    return std::make_unique<PlannedPool>(desc);
  }
  std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const override {
    CheckBatchNorm(desc);
    return std::make_unique<PlannedBatchNorm>(desc);
  }
  std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& desc) const override {
    CheckLrn(desc);
    return std::make_unique<PlannedLrn>(desc);
  }
  std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) const override {
    CheckSoftmax(desc);
    return std::make_unique<PlannedSoftmax>();
  }
  std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc) const override {
    CheckAttention(desc);
    return std::make_unique<PlannedAttention>(desc);
  }

  void Copy(const CopyDesc&, const void*, void*) const override { FailToCompute(); }
  void Convert(const ConstTensor&, const Tensor&) const override { FailToCompute(); }
  void AddChannelSums(const ChannelSumsDesc&, const ConstTensor&, const ConstTensor*,
                      float*) const override {
    FailToCompute();
  }
};

}  // namespace

std::unique_ptr<Device> MakeMetaDevice() { return std::make_unique<MetaDevice>(); }

}  // namespace trainer

// Convolutions of bf16 for which the library has no fast and right kernel: the tensors are
// converted to floats in the scratch, and the kernel that is chosen for floats computes them.

#include "conv_kernels.h"
#include "cpu/ops.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cpu {
namespace {

// One direction of a convolution: the kernel for floats, and copies of x (or dx) and y (or dy).
template <class Step>
class InFloats : public Step {
 public:
  InFloats(const Device& device, const ConvDesc& desc)
      : in_(desc.InShape()),
        out_(desc.OutShape()),
        x_(scratch_.Add<float>(in_.Count())),
        y_(scratch_.Add<float>(out_.Count())) {
    ConvDesc floats = desc;
    floats.dtype = DType::kF32;
    kernel_ =
        KernelRegistry<ConvDesc, Step>::Get().Choose(device, floats, "convolution in f32").made;
  }

  std::string Name() const override { return kernel_->Name() + " in f32"; }
  size_t ScratchBytes() const override { return scratch_.Bytes() + kernel_->ScratchBytes(); }

 protected:
  static void ToFloats(const void* from, const Shape& shape, float* to) {
    Convert(ConstTensor(from, shape, DType::kBF16), Tensor{to, shape});
  }
  static void ToBf16(float* from, const Shape& shape, void* to) {
    Convert(Tensor{from, shape}, Tensor{to, shape, DType::kBF16});
  }

  Shape in_, out_;
  ScratchLayout scratch_;
  ScratchRegion<float> x_, y_;
  std::unique_ptr<Step> kernel_;
};

class ForwardInFloats final : public InFloats<ConvForward> {
 public:
  using InFloats::InFloats;
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    ToFloats(x, in_, x_.At(scratch));
    kernel_->Run(x_.At(scratch), weight, bias, y_.At(scratch), scratch_.Tail(scratch));
    ToBf16(y_.At(scratch), out_, y);
  }
};

class BackwardDataInFloats final : public InFloats<ConvBackwardData> {
 public:
  using InFloats::InFloats;
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    ToFloats(dy, out_, y_.At(scratch));
    kernel_->Run(y_.At(scratch), weight, x_.At(scratch), scratch_.Tail(scratch));
    ToBf16(x_.At(scratch), in_, dx);
  }
};

class BackwardWeightInFloats final : public InFloats<ConvBackwardWeight> {
 public:
  using InFloats::InFloats;
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    ToFloats(x, in_, x_.At(scratch));
    ToFloats(dy, out_, y_.At(scratch));
    kernel_->Run(x_.At(scratch), y_.At(scratch), dweight, dbias, scratch_.Tail(scratch));
  }
};

// Accepts every convolution of bf16.
template <class Step, class Made>
KernelOrReason<Step> TakeInFloats(const Device& device, const ConvDesc& desc) {
  if (desc.dtype != DType::kBF16) return Unsupported{"the tensors are f32"};
  return std::make_unique<Made>(device, desc);
}

const RegisterConvKernel<ConvForward> kConvForwardInFloats(
    {DeviceKind::kCpu, priority::kLibrary + 10, "in f32",
     TakeInFloats<ConvForward, ForwardInFloats>});
const RegisterConvKernel<ConvBackwardData> kConvBackwardDataInFloats(
    {DeviceKind::kCpu, priority::kLibrary + 10, "in f32",
     TakeInFloats<ConvBackwardData, BackwardDataInFloats>});
const RegisterConvKernel<ConvBackwardWeight> kConvBackwardWeightInFloats(
    {DeviceKind::kCpu, priority::kLibrary + 10, "in f32",
     TakeInFloats<ConvBackwardWeight, BackwardWeightInFloats>});

}  // namespace
}  // namespace trainer::cpu

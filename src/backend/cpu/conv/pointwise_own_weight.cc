#include "cpu/blocked_product.h"
#include "cpu/conv/pointwise_own.h"

namespace trainer::cpu {
namespace {

// Computes dweight (m, c) += dy^T x, and dbias from the sums of dy.
class OwnPointwiseWeight final : public ConvBackwardWeight {
 public:
  explicit OwnPointwiseWeight(const ConvDesc& desc)
      : pixels_(desc),
        c_(desc.in_channels),
        m_(desc.out_channels),
        bias_(desc.bias),
        dtype_(desc.dtype),
        product_({.m = m_, .n = c_, .k = pixels_.count, .trans_a = true, .split_k = true}) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    StoredMatrix pixels = {x, dtype_, c_};
    if (pixels_.HasStride()) pixels.place = [this](int64_t p) { return pixels_.At(p); };
    product_.Run({dy, dtype_, m_}, pixels,
                 {.c = dweight, .accumulate = true, .row_sums = bias_ ? dbias : nullptr}, scratch);
  }

 private:
  ReadPixels pixels_;
  int64_t c_, m_;
  bool bias_;
  DType dtype_;
  BlockedProduct product_;
};

// Accepts a convolution unless OwnPointwiseRefuses gives a reason, f32 channels would leave much of
// the vectors empty, or there are so few that packing them for the product costs too much.
KernelOrReason<ConvBackwardWeight> TakeOwnPointwiseWeight(const Device&, const ConvDesc& desc) {
  if (auto why = OwnPointwiseRefuses(desc); !why.empty()) return Unsupported{why};
  const int64_t c = desc.in_channels, m = desc.out_channels;
  if (desc.dtype == DType::kF32 && 5 * RoundUpToLanes(c) * RoundUpToLanes(m) > 6 * c * m) {
    return Unsupported{"the channels are far from multiples of 16"};
  }
  constexpr int64_t kFewProducts = 2048;  // per pixel
  if (desc.dtype == DType::kF32 && c * m < kFewProducts) {
    return Unsupported{"there are so few channels that packing them costs too much"};
  }
  return std::make_unique<OwnPointwiseWeight>(desc);
}

const RegisterConvKernel<ConvBackwardWeight> kConvOwnPointwiseWeight(
    {DeviceKind::kCpu, priority::kOwn + 5, "own product", TakeOwnPointwiseWeight});

}  // namespace
}  // namespace trainer::cpu

// The definition of a convolution in plain loops on the CPU. It is the last candidate for each
// direction and the reference of the tests.

#include <algorithm>
#include <vector>

#include "conv_kernels.h"
#include "conv_positions.h"
#include "trainer/backend/primitives/conv.h"

namespace trainer {
namespace {

// One term of an output's sum, weight[m, c, tap] * x[n, c, in], as offsets in memory.
struct Term {
  int64_t x, weight;
};

// Loops over the outputs of a convolution and over the terms of each output's sum.
class ReferenceLoops {
 public:
  explicit ReferenceLoops(const ConvDesc& desc) : desc_(desc), positions_(desc) {
    for (int64_t out = 0; out < positions_.out_area; ++out) {
      for (int64_t tap = 0; tap < positions_.taps; ++tap)
        read_.push_back(positions_.Reads(out, tap));
    }
  }

  const ConvDesc& desc() const { return desc_; }
  int64_t OutAt(int64_t n, int64_t m, int64_t out) const { return positions_.OutAt(n, m, out); }

  // Calls f(image, output channel, position) for every output.
  template <class F>
  void ForEachOut(F f) const {
    for (int64_t n = 0; n < positions_.batch; ++n) {
      for (int64_t m = 0; m < positions_.out_channels; ++m) {
        for (int64_t out = 0; out < positions_.out_area; ++out) f(n, m, out);
      }
    }
  }

  // Calls f(Term) for every term of an output's sum; taps on padding have none.
  template <class F>
  void ForEachTerm(int64_t n, int64_t m, int64_t out, F f) const {
    const int64_t first = positions_.FirstRead(m);
    for (int64_t c = 0; c < positions_.group_in; ++c) {
      for (int64_t tap = 0; tap < positions_.taps; ++tap) {
        const int64_t position = read_[out * positions_.taps + tap];
        if (position < 0) continue;
        f(Term{positions_.InAt(n, first + c, position), positions_.WeightAt(m, c, tap)});
      }
    }
  }

 private:
  ConvDesc desc_;
  ConvPositions positions_;
  std::vector<int64_t> read_;  // input position that each tap reads, per output position
};

constexpr const char* kReferenceConvName = "reference loops";

// Sums the terms of each output in order.
class ReferenceForward final : public ConvForward {
 public:
  explicit ReferenceForward(const ConvDesc& desc) : loops_(desc) {}

  std::string Name() const override { return kReferenceConvName; }
  size_t ScratchBytes() const override { return 0; }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte>) override {
    const ConvDesc& desc = loops_.desc();
    DispatchDtype(desc.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* const in = static_cast<const T*>(x);
      T* const to = static_cast<T*>(y);
      loops_.ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        float sum = 0;
        loops_.ForEachTerm(n, m, out,
                           [&](const Term& t) { sum += weight[t.weight] * Load(in[t.x]); });
        if (desc.bias) sum += bias[m];
        if (desc.relu && sum <= 0) sum = 0;
        Store(to[loops_.OutAt(n, m, out)], sum);
      });
    });
  }

 private:
  ReferenceLoops loops_;
};

// Adds the contribution of each dy to all weights that it was computed with.
class ReferenceBackwardWeight final : public ConvBackwardWeight {
 public:
  explicit ReferenceBackwardWeight(const ConvDesc& desc) : loops_(desc) {}

  std::string Name() const override { return kReferenceConvName; }
  size_t ScratchBytes() const override { return 0; }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte>) override {
    const ConvDesc& desc = loops_.desc();
    DispatchDtype(desc.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *const in = static_cast<const T*>(x), *const grads = static_cast<const T*>(dy);
      loops_.ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        const float grad = Load(grads[loops_.OutAt(n, m, out)]);
        loops_.ForEachTerm(n, m, out,
                           [&](const Term& t) { dweight[t.weight] += grad * Load(in[t.x]); });
        if (desc.bias && dbias != nullptr) dbias[m] += grad;
      });
    });
  }

 private:
  ReferenceLoops loops_;
};

// Adds the contribution of each dy to dx, in float. If dx is not f32, the sums are in scratch and
// are rounded once.
class ReferenceBackwardData final : public ConvBackwardData {
 public:
  explicit ReferenceBackwardData(const ConvDesc& desc)
      : loops_(desc), count_(desc.InShape().Count()), in_place_(desc.dtype == DType::kF32) {}

  std::string Name() const override { return kReferenceConvName; }
  // Returns room for the f32 sums, if dx is not f32 itself.
  size_t ScratchBytes() const override {
    return in_place_ ? 0 : static_cast<size_t>(count_) * sizeof(float);
  }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    float* const sum =
        in_place_ ? static_cast<float*>(dx) : reinterpret_cast<float*>(scratch.data());
    std::fill_n(sum, count_, 0.0f);
    DispatchDtype(loops_.desc().dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      loops_.ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        const float grad = Load(static_cast<const T*>(dy)[loops_.OutAt(n, m, out)]);
        loops_.ForEachTerm(n, m, out, [&](const Term& t) { sum[t.x] += grad * weight[t.weight]; });
      });
      for (int64_t i = 0; !in_place_ && i < count_; ++i) Store(static_cast<T*>(dx)[i], sum[i]);
    });
  }

 private:
  ReferenceLoops loops_;
  int64_t count_;
  bool in_place_;
};

// Accepts every convolution. It is the last candidate.
template <class Step, class Made>
KernelOrReason<Step> TakeReferenceConv(const Device&, const ConvDesc& desc) {
  return std::make_unique<Made>(desc);
}

const RegisterConvKernel<ConvForward> kReferenceConvForward(
    {DeviceKind::kCpu, priority::kReference, kReferenceConvName,
     TakeReferenceConv<ConvForward, ReferenceForward>});
const RegisterConvKernel<ConvBackwardData> kReferenceConvData(
    {DeviceKind::kCpu, priority::kReference, kReferenceConvName,
     TakeReferenceConv<ConvBackwardData, ReferenceBackwardData>});
const RegisterConvKernel<ConvBackwardWeight> kReferenceConvWeight(
    {DeviceKind::kCpu, priority::kReference, kReferenceConvName,
     TakeReferenceConv<ConvBackwardWeight, ReferenceBackwardWeight>});

}  // namespace

std::unique_ptr<ConvPrimitive> MakeReferenceConv(const ConvDesc& desc) {
  return JoinConvKernels(desc, std::make_unique<ReferenceForward>(desc),
                         std::make_unique<ReferenceBackwardData>(desc),
                         std::make_unique<ReferenceBackwardWeight>(desc));
}

}  // namespace trainer

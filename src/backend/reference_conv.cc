#include <algorithm>
#include <vector>

#include "trainer/backend/conv.h"

namespace trainer {
namespace {

// One term of an output's sum, weight[m, c, tap] * x[n, c, in], by places in memory.
struct Term {
  int64_t x, weight;
};

class ReferenceConv final : public ConvPlan {
 public:
  explicit ReferenceConv(const ConvDesc& desc)
      : desc_(desc),
        in_area_(desc.InShape().Count(2)),
        out_area_(desc.OutShape().Count(2)),
        taps_(desc.WeightShape().Count(2)) {
    ListTaps();
  }

  // The data gradient's sums, where they cannot be taken in place.
  size_t ScratchBytes() const override {
    if (desc_.dtype == DType::kF32) return 0;
    return static_cast<size_t>(desc_.InShape().Count()) * sizeof(float);
  }
  std::string Implementation() const override { return "reference loops"; }

  void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
               std::span<std::byte>) override {
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        float sum = 0;
        ForEachTerm(n, m, out,
                    [&](const Term& t) { sum += weight[t.weight] * Load(x.As<T>()[t.x]); });
        if (desc_.bias) sum += bias[m];
        if (desc_.relu && sum <= 0) sum = 0;
        Store(y.As<T>()[At(n, m, out, desc_.out_channels, out_area_)], sum);
      });
    });
  }

  void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                      std::span<std::byte>) override {
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        const float grad = Load(dy.As<T>()[At(n, m, out, desc_.out_channels, out_area_)]);
        ForEachTerm(n, m, out,
                    [&](const Term& t) { dweight[t.weight] += grad * Load(x.As<T>()[t.x]); });
        if (desc_.bias && dbias != nullptr) dbias[m] += grad;
      });
    });
  }

  void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                    std::span<std::byte> scratch) override {
    const bool in_place = desc_.dtype == DType::kF32;
    float* sum = in_place ? dx.f32() : reinterpret_cast<float*>(scratch.data());
    std::fill_n(sum, dx.Count(), 0.0f);
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachOut([&](int64_t n, int64_t m, int64_t out) {
        const float grad = Load(dy.As<T>()[At(n, m, out, desc_.out_channels, out_area_)]);
        ForEachTerm(n, m, out, [&](const Term& t) { sum[t.x] += grad * weight[t.weight]; });
      });
      for (int64_t i = 0; !in_place && i < dx.Count(); ++i) Store(dx.As<T>()[i], sum[i]);
    });
  }

 private:
  // The places that one tap of the kernel reads, per output place: -1 outside the input.
  void ListTaps() {
    const std::vector<int64_t> out = desc_.Out();
    read_.assign(static_cast<size_t>(out_area_ * taps_), 0);
    for (int64_t o = 0; o < out_area_; ++o) {
      for (int64_t tap = 0; tap < taps_; ++tap) read_[o * taps_ + tap] = Reads(out, o, tap);
    }
  }

  int64_t Reads(const std::vector<int64_t>& out, int64_t o, int64_t tap) const {
    int64_t place = 0, step = 1;
    for (size_t axis = out.size(); axis-- > 0; o /= out[axis], tap /= desc_.kernel[axis]) {
      const int64_t at = o % out[axis] * desc_.stride[axis] - desc_.pad[axis] +
                         tap % desc_.kernel[axis] * desc_.dilation[axis];
      if (at < 0 || at >= desc_.in[axis]) return -1;
      place += at * step;
      step *= desc_.in[axis];
    }
    return place;
  }

  // Images are channels-last.
  int64_t At(int64_t n, int64_t c, int64_t place, int64_t channels, int64_t area) const {
    if (desc_.in.size() == 2) return (n * area + place) * channels + c;
    return (n * channels + c) * area + place;
  }

  template <class F>
  void ForEachOut(F f) const {
    for (int64_t n = 0; n < desc_.batch; ++n) {
      for (int64_t m = 0; m < desc_.out_channels; ++m) {
        for (int64_t out = 0; out < out_area_; ++out) f(n, m, out);
      }
    }
  }

  template <class F>
  void ForEachTerm(int64_t n, int64_t m, int64_t out, F f) const {
    const int64_t channels = desc_.in_channels / desc_.group;
    const int64_t first = m / (desc_.out_channels / desc_.group) * channels;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int64_t place = read_[out * taps_ + tap];
        if (place < 0) continue;
        f(Term{At(n, first + c, place, desc_.in_channels, in_area_),
               (m * channels + c) * taps_ + tap});
      }
    }
  }

  ConvDesc desc_;
  int64_t in_area_, out_area_, taps_;
  std::vector<int64_t> read_;
};

}  // namespace

std::unique_ptr<ConvPlan> MakeReferenceConv(const ConvDesc& desc) {
  return std::make_unique<ReferenceConv>(desc);
}

}  // namespace trainer

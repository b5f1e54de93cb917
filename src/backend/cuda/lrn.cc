#include "candidates.h"
#include "cuda/loops.h"
#include "lrn_steps.h"

namespace trainer::cuda {
namespace {

// One row per pixel: base and y.
template <class T, class Power>
struct AcrossForward {
  SquareOf<T> square;
  LrnNormalize<T, Power> normalize;
  int64_t channels, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * channels;
    row.ForEach(
        [&](int64_t c) { normalize.Put(at + c, SumAround(square, at, c, channels, half)); });
  }
};

template <class T, class Power>
struct ShareOf {
  LrnShare<T, Power> share;
  HD float operator()(int64_t at) const { return share.Value(at); }
};

// One row per pixel: dx. What a channel adds to its neighbours' gradients is computed again for
// each of them, from numbers that lie in the cache.
template <class T, class Power>
struct AcrossBackward {
  ShareOf<T, Power> share;
  LrnGradient<T, Power> gradient;
  int64_t channels, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * channels;
    row.ForEach([&](int64_t c) { gradient.Put(at + c, SumAround(share, at, c, channels, half)); });
  }
};

// Sums across channels, one pass each way. Workspace: k + factor * (sum of squares) per element.
template <class Power>
class LrnOnePass final : public LrnPlan {
 public:
  LrnOnePass(const Device& device, const LrnDesc& desc, Power power)
      : loops_(device), desc_(desc), power_(power) {}

  std::string Implementation() const override { return "one pass"; }
  size_t WorkspaceBytes() const override {
    return static_cast<size_t>(desc_.shape.Count()) * sizeof(float);
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    auto* const base = reinterpret_cast<float*>(workspace.data());
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* in = x.As<T>();
      ForPixels(AcrossForward<T, Power>{
          {in}, {in, base, y.As<T>(), desc_.k, desc_.factor, power_}, desc_.shape[1], desc_.half});
    });
  }

  void Backward(ConstTensor x, ConstTensor dy, Tensor dx, std::span<const std::byte> workspace,
                std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, dy, ConstTensor(dx)}) Expect(tensor);
    const auto* const base = reinterpret_cast<const float*>(workspace.data());
    const float slope = 2 * desc_.factor * desc_.beta;
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *in = x.As<T>(), *grad = dy.As<T>();
      ForPixels(AcrossBackward<T, Power>{{{in, grad, base, nullptr, power_}},
                                         {in, grad, base, nullptr, dx.As<T>(), power_, slope},
                                         desc_.shape[1],
                                         desc_.half});
    });
  }

 private:
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("LRN", desc_.shape, desc_.dtype, tensor);
  }
  template <class F>
  void ForPixels(F f) const {
    const Shape& s = desc_.shape;
    loops_.ForRows(s[0] * s[2] * s[3], s[1], f);
  }

  Loops loops_;
  LrnDesc desc_;
  Power power_;
};

// The powers that are computed again for more neighbours cost more than a second pass.
constexpr int64_t kMostHalf = 8;

Offer<LrnPlan> TakeOnePass(const Device& device, const LrnDesc& desc) {
  if (!desc.across) return Declines{"it takes sums across channels only"};
  if (desc.half > kMostHalf) return Declines{"the neighbours are too many for one pass"};
  return WithLrnPower(desc.beta, [&](auto power) -> std::unique_ptr<LrnPlan> {
    return std::make_unique<LrnOnePass<decltype(power)>>(device, desc, power);
  });
}
Offer<LrnPlan> TakeSteps(const Device& device, const LrnDesc& desc) {
  return MakeLrnInSteps(desc, Loops(device));
}

using Register = RegisterCandidate<LrnDesc, LrnPlan>;
const Register kOnePass({DeviceKind::kCuda, rank::kOwn, "one pass", TakeOnePass});
const Register kSteps({DeviceKind::kCuda, rank::kReference, "steps", TakeSteps});

}  // namespace
}  // namespace trainer::cuda

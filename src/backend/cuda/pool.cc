#include "candidates.h"
#include "check.h"
#include "cuda/loops.h"
#include "pool_math.h"
#include "trainer/base/error.h"

namespace trainer::cuda {
namespace {

// The windows [first, last) along one axis that cover place i.
struct Covering {
  int32_t first, last;

  HD Covering(int64_t i, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
    const auto step = static_cast<uint32_t>(stride);
    const int64_t from = i + pad - kernel + stride;  // stride * (the first of them), or less
    first = from < stride ? 0 : static_cast<int32_t>(static_cast<uint32_t>(from) / step);
    last = static_cast<int32_t>(static_cast<uint32_t>(i + pad) / step + 1);
    if (last > out) last = static_cast<int32_t>(out);
  }
};

// The windows over a place of the input, gathered in their order: no two threads add to one number.
struct CoveringWindows {
  Covering h, w;

  HD CoveringWindows(const PoolDesc& d, int64_t at_h, int64_t at_w)
      : h(at_h, d.out_h, d.kernel_h, d.stride_h, d.pad_h),
        w(at_w, d.out_w, d.kernel_w, d.stride_w, d.pad_w) {}
};

template <class T>
struct MaxGradient {
  PoolDesc d;
  const T* dy;
  const int32_t* winners;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t c) const {
    const CoveringWindows over(d, h, w);
    const int64_t place = h * d.in_w + w;
    float sum = 0;
    for (int32_t oh = over.h.first; oh < over.h.last; ++oh) {
      for (int32_t ow = over.w.first; ow < over.w.last; ++ow) {
        const int64_t out = PoolOut(d, n, oh, ow, c);
        if (winners[out] == place) sum += Load(dy[out]);
      }
    }
    Store(dx[PoolIn(d, n, place, c)], sum);
  }
};

template <class T>
struct AverageGradient {
  PoolDesc d;
  const T* dy;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t c) const {
    const CoveringWindows over(d, h, w);
    float sum = 0;
    for (int32_t oh = over.h.first; oh < over.h.last; ++oh) {
      for (int32_t ow = over.w.first; ow < over.w.last; ++ow) {
        sum += Load(dy[PoolOut(d, n, oh, ow, c)]) / PoolWindowAt(d, oh, ow).area;
      }
    }
    Store(dx[PoolIn(d, n, h * d.in_w + w, c)], sum);
  }
};

template <class T>
struct WinnerToMask {
  const int32_t* winners;
  T* mask;
  HD void operator()(int64_t i) const { Store(mask[i], static_cast<float>(winners[i])); }
};

// A thread per output, or per input in backward. Workspace: the winners' places.
class PoolOfThreads final : public PoolPlan {
 public:
  PoolOfThreads(const Device& device, const PoolDesc& desc) : loops_(device), desc_(desc) {}

  std::string Implementation() const override { return "a thread per output"; }
  size_t WorkspaceBytes() const override {
    if (desc_.method == PoolMethod::kAverage || !desc_.training) return 0;
    return static_cast<size_t>(desc_.OutShape().Count()) * sizeof(int32_t);
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    Expect(x, y);
    auto* const winners =
        WorkspaceBytes() > 0 ? reinterpret_cast<int32_t*>(workspace.data()) : nullptr;
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (desc_.method == PoolMethod::kMax) {
        ForOutputs(MaxOfWindow<T>{desc_, x.As<T>(), y.As<T>(), winners});
      } else {
        ForOutputs(AverageOfWindow<T>{desc_, x.As<T>(), y.As<T>()});
      }
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    Expect(dx, dy);
    const auto* const winners = reinterpret_cast<const int32_t*>(workspace.data());
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (desc_.method == PoolMethod::kMax) {
        ForInputs(MaxGradient<T>{desc_, dy.As<T>(), winners, dx.As<T>()});
      } else {
        ForInputs(AverageGradient<T>{desc_, dy.As<T>(), dx.As<T>()});
      }
    });
  }

  void Winners(std::span<const std::byte> workspace, Tensor mask) override {
    if (desc_.method == PoolMethod::kAverage) {
      throw Error(ErrorCode::kInternal, "an average pool has no winners");
    }
    const auto* const winners = reinterpret_cast<const int32_t*>(workspace.data());
    WithType(mask.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      loops_.ForEach(mask.Count(), WinnerToMask<T>{winners, mask.As<T>()});
    });
  }

 private:
  void Expect(const ConstTensor& x, const ConstTensor& y) const {
    ExpectPlanned("pooling", desc_.InShape(), desc_.dtype, x);
    ExpectPlanned("pooling", desc_.OutShape(), desc_.dtype, y);
  }
  template <class F>
  void ForOutputs(F f) const {
    loops_.ForImages(desc_.batch, desc_.out_h, desc_.out_w, desc_.channels, f);
  }
  template <class F>
  void ForInputs(F f) const {
    loops_.ForImages(desc_.batch, desc_.in_h, desc_.in_w, desc_.channels, f);
  }

  Loops loops_;
  PoolDesc desc_;
};

Offer<PoolPlan> Take(const Device& device, const PoolDesc& desc) {
  if (!PoolFits32Bits(desc)) return Declines{"the images have 2^30 pixels or more"};
  return std::make_unique<PoolOfThreads>(device, desc);
}

const RegisterCandidate<PoolDesc, PoolPlan> kPool({DeviceKind::kCuda, rank::kReference,
                                                   "a thread per output", Take});

}  // namespace
}  // namespace trainer::cuda

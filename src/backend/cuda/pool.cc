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

  // The sum of what of(oh, ow) gives for each of them.
  template <class F>
  HD float Sum(const F& of) const {
    float sum = 0;
    for (int32_t oh = h.first; oh < h.last; ++oh) {
      for (int32_t ow = w.first; ow < w.last; ++ow) sum += of(oh, ow);
    }
    return sum;
  }
};

// A winner is kept as its tap, its number in the window's rows one after the other; padding counts.
template <class Tap>
constexpr Tap kNoWinner = static_cast<Tap>(~Tap{0});

HD int64_t TapAt(const PoolDesc& d, int64_t h, int64_t w, int64_t oh, int64_t ow) {
  return (h + d.pad_h - oh * d.stride_h) * d.kernel_w + w + d.pad_w - ow * d.stride_w;
}

// y, and the winners' taps unless `taps` is null.
template <class T, class Tap>
struct MaxAndTap {
  MaxOfWindow<T> max;
  Tap* taps;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const int32_t place = max.Put(n, oh, ow, c);
    if (taps == nullptr) return;
    const PoolDesc& d = max.d;
    Tap tap = kNoWinner<Tap>;
    if (place >= 0) {
      const auto width = static_cast<uint32_t>(d.in_w), h = static_cast<uint32_t>(place) / width;
      tap = static_cast<Tap>(TapAt(d, h, static_cast<uint32_t>(place) - h * width, oh, ow));
    }
    taps[PoolOut(d, n, oh, ow, c)] = tap;
  }
};

template <class T, class Tap>
struct MaxGradient {
  PoolDesc d;
  const T* dy;
  const Tap* taps;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t c) const {
    const float sum = CoveringWindows(d, h, w).Sum([&](int32_t oh, int32_t ow) {
      const int64_t out = PoolOut(d, n, oh, ow, c);
      return taps[out] == static_cast<Tap>(TapAt(d, h, w, oh, ow)) ? Load(dy[out]) : 0.0f;
    });
    Store(dx[PoolIn(d, n, h * d.in_w + w, c)], sum);
  }
};

template <class T>
struct AverageGradient {
  PoolDesc d;
  const T* dy;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t c) const {
    const float sum = CoveringWindows(d, h, w).Sum([&](int32_t oh, int32_t ow) {
      return Load(dy[PoolOut(d, n, oh, ow, c)]) / PoolWindowAt(d, oh, ow).area;
    });
    Store(dx[PoolIn(d, n, h * d.in_w + w, c)], sum);
  }
};

template <class Tap>
struct TapToPlace {
  PoolDesc d;
  const Tap* taps;
  float* places;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t c) const {
    const int64_t out = PoolOut(d, n, oh, ow, c), tap = taps[out];
    const int64_t h = oh * d.stride_h - d.pad_h + tap / d.kernel_w;
    const int64_t w = ow * d.stride_w - d.pad_w + tap % d.kernel_w;
    const bool won = tap != kNoWinner<Tap>;
    places[out] = won ? static_cast<float>(h * d.in_w + w) : -1.0f;
  }
};

// A thread per output, or per input in backward. Workspace: the winners' taps, in a byte each where
// windows are as small as usual.
class PoolOfThreads final : public PoolPlan {
 public:
  PoolOfThreads(const Device& device, const PoolDesc& desc) : loops_(device), desc_(desc) {}

  std::string Implementation() const override { return "a thread per output"; }
  size_t WorkspaceBytes() const override {
    if (desc_.method == PoolMethod::kAverage || !desc_.training) return 0;
    return static_cast<size_t>(desc_.OutShape().Count()) * (HasSmallTaps() ? 1 : sizeof(uint32_t));
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    Expect(x, y);
    WithTypes([&]<class T, class Tap>(TypeTag<T>, TypeTag<Tap>) {
      if (desc_.method == PoolMethod::kAverage) {
        return ForOutputs(AverageOfWindow<T>{desc_, x.As<T>(), y.As<T>()});
      }
      auto* const taps = WorkspaceBytes() > 0 ? reinterpret_cast<Tap*>(workspace.data()) : nullptr;
      ForOutputs(MaxAndTap<T, Tap>{{desc_, x.As<T>(), y.As<T>(), nullptr}, taps});
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    Expect(dx, dy);
    WithTypes([&]<class T, class Tap>(TypeTag<T>, TypeTag<Tap>) {
      if (desc_.method == PoolMethod::kAverage) {
        return ForInputs(AverageGradient<T>{desc_, dy.As<T>(), dx.As<T>()});
      }
      const auto* const taps = reinterpret_cast<const Tap*>(workspace.data());
      ForInputs(MaxGradient<T, Tap>{desc_, dy.As<T>(), taps, dx.As<T>()});
    });
  }

  void Winners(std::span<const std::byte> workspace, Tensor mask) override {
    if (desc_.method == PoolMethod::kAverage) {
      throw Error(ErrorCode::kInternal, "an average pool has no winners");
    }
    if (mask.dtype != DType::kF32) throw Error(ErrorCode::kInternal, "winners are told as f32");
    const auto tell = [&](auto tag) {
      using Tap = typename decltype(tag)::Type;
      const auto* const taps = reinterpret_cast<const Tap*>(workspace.data());
      ForOutputs(TapToPlace<Tap>{desc_, taps, mask.As<float>()});
    };
    HasSmallTaps() ? tell(TypeTag<uint8_t>{}) : tell(TypeTag<uint32_t>{});
  }

 private:
  bool HasSmallTaps() const { return desc_.kernel_h * desc_.kernel_w <= kNoWinner<uint8_t>; }
  // f of the type of the values and of that of the taps.
  template <class F>
  void WithTypes(const F& f) const {
    WithType(desc_.dtype, [&](auto tag) {
      HasSmallTaps() ? f(tag, TypeTag<uint8_t>{}) : f(tag, TypeTag<uint32_t>{});
    });
  }
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

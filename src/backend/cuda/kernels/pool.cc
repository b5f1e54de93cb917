#include "cuda/kernels/pool_fixed.h"
#include "cuda/loops.h"
#include "desc_checks.h"
#include "kernel_registry.h"
#include "pool_math.h"
#include "trainer/backend/loops/vector_access.h"
#include "trainer/base/error/error.h"

namespace trainer::cuda {
namespace {

// The windows [first, last) along one axis that cover position i.
struct Covering {
  int32_t first, last;

  HD Covering(int64_t i, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
    const auto step = static_cast<uint32_t>(stride);
    // the first window is from / stride, rounded down
    const int64_t from = i + pad - kernel + stride;
    first = from < stride ? 0 : static_cast<int32_t>(static_cast<uint32_t>(from) / step);
    last = static_cast<int32_t>(static_cast<uint32_t>(i + pad) / step + 1);
    if (last > out) last = static_cast<int32_t>(out);
  }
};

// The windows that cover a position of the input. Each input gathers its windows in order, so that
// no two threads add to the same element.
struct CoveringWindows {
  Covering h, w;

  HD CoveringWindows(const PoolDesc& d, int64_t at_h, int64_t at_w)
      : h(at_h, d.out_h, d.kernel_h, d.stride_h, d.pad_h),
        w(at_w, d.out_w, d.kernel_w, d.stride_w, d.pad_w) {}

  // Calls f(oh, ow) for each window.
  template <class F>
  HD void ForEach(const F& f) const {
    for (int32_t oh = h.first; oh < h.last; ++oh) {
      for (int32_t ow = w.first; ow < w.last; ++ow) f(oh, ow);
    }
  }
};

// Returns the tap that position (h, w) of the input has in window (oh, ow).
HD int64_t TapAt(const PoolDesc& d, int64_t h, int64_t w, int64_t oh, int64_t ow) {
  return (h + d.pad_h - oh * d.stride_h) * d.kernel_w + w + d.pad_w - ow * d.stride_w;
}

// The functors below process V channels each, starting at channel `group` * V.

// Writes y and, unless `taps` is null, the winners' taps.
template <class T, class Tap, int V>
struct MaxAndTap {
  PoolDesc d;
  const T* x;
  T* y;
  Tap* taps;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t group) const {
    const PoolWindow window = PoolWindowAt(d, oh, ow);
    const T* const from = x + PoolIn(d, n, 0, group * V);
    float most[V];
    Neighbours<Tap, V> winners;
    for (int v = 0; v < V; ++v) {
      most[v] = d.Start();
      winners.values[v] = kNoWinner<Tap>;
    }
    for (int32_t h = window.h0; h < window.h1; ++h) {
      auto tap = static_cast<uint32_t>(TapAt(d, h, window.w0, oh, ow));
// Rows of windows are short: most would not fill the 16 taps that nvcc would take at a time.
#pragma unroll 4
      for (int32_t w = window.w0; w < window.w1; ++w, ++tap) {
        const auto read = LoadVector<V>(from, (h * d.in_w + w) * d.channels);
        for (int v = 0; v < V; ++v) {
          const float value = Load(read[v]);
          if (!(value > most[v])) continue;
          most[v] = value;
          winners.values[v] = static_cast<Tap>(tap);
        }
      }
    }
    Neighbours<T, V> result;
    for (int v = 0; v < V; ++v) Store(result.values[v], most[v]);
    const int64_t out = PoolOut(d, n, oh, ow, group * V);
    WriteTogether(result, y, out);
    if (taps != nullptr) WriteTogether(winners, taps, out);
  }
};

// Writes dx: the sum of dy over the windows that this position has won.
template <class T, class Tap, int V>
struct MaxGradient {
  PoolDesc d;
  const T* dy;
  const Tap* taps;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t group) const {
    float sum[V] = {};
    CoveringWindows(d, h, w).ForEach([&](int32_t oh, int32_t ow) {
      const int64_t out = PoolOut(d, n, oh, ow, group * V);
      const auto gradients = LoadVector<V>(dy, out);
      const auto winners = LoadVector<V>(taps, out);
      const auto tap = static_cast<Tap>(TapAt(d, h, w, oh, ow));
      for (int v = 0; v < V; ++v) sum[v] += winners[v] == tap ? Load(gradients[v]) : 0.0f;
    });
    StoreVector<V>(sum, dx, PoolIn(d, n, h * d.in_w + w, group * V));
  }
};

// Writes y: the sum of a window divided by its area, which includes padding.
template <class T, int V>
struct Average {
  PoolDesc d;
  const T* x;
  T* y;

  HD void operator()(int64_t n, int64_t oh, int64_t ow, int64_t group) const {
    const PoolWindow window = PoolWindowAt(d, oh, ow);
    const T* const from = x + PoolIn(d, n, 0, group * V);
    float sum[V] = {};
    for (int32_t h = window.h0; h < window.h1; ++h) {
      for (int32_t w = window.w0; w < window.w1; ++w) {
        const auto read = LoadVector<V>(from, (h * d.in_w + w) * d.channels);
        for (int v = 0; v < V; ++v) sum[v] += Load(read[v]);
      }
    }
    const float inverse = 1 / window.area;
    for (int v = 0; v < V; ++v) sum[v] *= inverse;
    StoreVector<V>(sum, y, PoolOut(d, n, oh, ow, group * V));
  }
};

// Writes dx: the sum of dy / area over the windows that cover this position.
template <class T, int V>
struct AverageGradient {
  PoolDesc d;
  const T* dy;
  T* dx;

  HD void operator()(int64_t n, int64_t h, int64_t w, int64_t group) const {
    float sum[V] = {};
    CoveringWindows(d, h, w).ForEach([&](int32_t oh, int32_t ow) {
      const auto gradients = LoadVector<V>(dy, PoolOut(d, n, oh, ow, group * V));
      const float inverse = 1 / PoolWindowAt(d, oh, ow).area;
      for (int v = 0; v < V; ++v) sum[v] += Load(gradients[v]) * inverse;
    });
    StoreVector<V>(sum, dx, PoolIn(d, n, h * d.in_w + w, group * V));
  }
};

// Converts the tap of one winner to its index h * W + w in the input plane; -1 if the window has no
// winner.
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

template <int I>
using Fixed = std::integral_constant<int, I>;

// Uses a thread per output (per input in backward) of a few channels. The workspace holds the
// winners' taps, one byte each if the window is small enough.
class PoolOfThreads final : public PoolPrimitive {
 public:
  PoolOfThreads(const Device& device, const PoolDesc& desc) : loops_(device), desc_(desc) {}

  std::string kernel() const override { return "a thread per output"; }
  size_t WorkspaceBytes() const override {
    if (desc_.method == PoolMethod::kAverage || !desc_.training) return 0;
    return static_cast<size_t>(desc_.OutShape().Count()) *
           (HasByteTaps(desc_) ? 1 : sizeof(uint32_t));
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    Expect(x, y);
    WithTypes([&]<class T, class Tap>(TypeTag<T>, TypeTag<Tap>) {
      auto* const taps = WorkspaceBytes() > 0 ? reinterpret_cast<Tap*>(workspace.data()) : nullptr;
      WithTogether({x.data, y.data, taps}, [&](auto together) {
        constexpr int kV = decltype(together)::value;
        if (desc_.method == PoolMethod::kAverage) {
          return ForOutputs<kV>(Average<T, kV>{desc_, x.As<T>(), y.As<T>()});
        }
        if constexpr (kV > 1 && std::is_same_v<Tap, uint8_t>) {
          const bool is_usual = WithFixedWindow(desc_, [&]<int K, int S>(Fixed<K>, Fixed<S>) {
            WithWidth<FixedMaxAndTap<T, 8, K, S>, FixedMaxAndTap<T, 4, K, S>>([&]<int W>(Fixed<W>) {
              ForOutputs<W>(FixedMaxAndTap<T, W, K, S>{desc_, x.As<T>(), y.As<T>(), taps});
            });
          });
          if (is_usual) return;
        }
        ForOutputs<kV>(MaxAndTap<T, Tap, kV>{desc_, x.As<T>(), y.As<T>(), taps});
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    Expect(dx, dy);
    WithTypes([&]<class T, class Tap>(TypeTag<T>, TypeTag<Tap>) {
      const auto* const taps = reinterpret_cast<const Tap*>(workspace.data());
      WithTogether({dy.data, dx.data, taps}, [&](auto together) {
        constexpr int kV = decltype(together)::value;
        if (desc_.method == PoolMethod::kAverage) {
          return ForInputs<kV>(AverageGradient<T, kV>{desc_, dy.As<T>(), dx.As<T>()});
        }
        if constexpr (kV > 1 && std::is_same_v<Tap, uint8_t>) {
          const bool is_usual = WithFixedWindow(desc_, [&]<int K, int S>(Fixed<K>, Fixed<S>) {
            WithWidth<FixedMaxGradient<T, 8, K, S>, FixedMaxGradient<T, 4, K, S>>(
                [&]<int W>(Fixed<W>) {
                  ForInputs<W>(FixedMaxGradient<T, W, K, S>{desc_, dy.As<T>(), taps, dx.As<T>()});
                });
          });
          if (is_usual) return;
        }
        ForInputs<kV>(MaxGradient<T, Tap, kV>{desc_, dy.As<T>(), taps, dx.As<T>()});
      });
    });
  }

  void ArgMax(std::span<const std::byte> workspace, Tensor mask) override {
    if (desc_.method == PoolMethod::kAverage) {
      throw Error(ErrorCode::kInternal, "an average pool has no winners");
    }
    if (mask.dtype != DType::kF32) throw Error(ErrorCode::kInternal, "winners are told as f32");
    const auto tell = [&](auto tag) {
      using Tap = typename decltype(tag)::Type;
      const auto* const taps = reinterpret_cast<const Tap*>(workspace.data());
      ForOutputs<1>(TapToPlace<Tap>{desc_, taps, mask.As<float>()});
    };
    HasByteTaps(desc_) ? tell(TypeTag<uint8_t>{}) : tell(TypeTag<uint32_t>{});
  }

 private:
  // Calls f with the type of the values and the type of the taps.
  template <class F>
  void WithTypes(const F& f) const {
    DispatchDtype(desc_.dtype, [&](auto tag) {
      HasByteTaps(desc_) ? f(tag, TypeTag<uint8_t>{}) : f(tag, TypeTag<uint32_t>{});
    });
  }
  // Throws kInternal unless x and y have the planned shapes and type.
  void Expect(const ConstTensor& x, const ConstTensor& y) const {
    ExpectPlanned("pooling", desc_.InShape(), desc_.dtype, x);
    ExpectPlanned("pooling", desc_.OutShape(), desc_.dtype, y);
  }
  // Calls f with the number of channels that a thread takes: 4 if all groups of 4 channels are
  // aligned, otherwise 1.
  template <class F>
  void WithTogether(std::initializer_list<const void*> arrays, const F& f) const {
    constexpr int kMax = 4;
    uintptr_t addresses = 0;
    for (const void* array : arrays) addresses |= AddressOf(array);
    const bool aligned = addresses % (kMax * sizeof(float)) == 0;
    desc_.channels % kMax == 0 && aligned ? f(std::integral_constant<int, kMax>())
                                          : f(std::integral_constant<int, 1>());
  }
  // Calls f with the number of channels that a thread of a FixedMax functor takes, if groups of 4
  // are aligned: as many as fit, so that few threads compute places. Eight and Four are the
  // functors for as many channels.
  template <class Eight, class Four, class F>
  void WithWidth(const F& f) const {
    if constexpr (Eight::kFits) {
      if (desc_.channels % 8 == 0) return f(Fixed<8>());
    }
    constexpr int kWidth = Four::kFits ? 4 : 2;
    f(Fixed<kWidth>());
  }
  // Calls f(image, oh, ow, group) for each group of V channels of each output.
  template <int V, class F>
  void ForOutputs(F f) const {
    loops_.ForImages(desc_.batch, desc_.out_h, desc_.out_w, desc_.channels / V, f);
  }
  // Calls f(image, h, w, group) for each group of V channels of each input.
  template <int V, class F>
  void ForInputs(F f) const {
    loops_.ForImages(desc_.batch, desc_.in_h, desc_.in_w, desc_.channels / V, f);
  }

  Loops loops_;
  PoolDesc desc_;
};

// Accepts pools of images with less than 2^30 pixels and channels. It is the only candidate.
KernelOrReason<PoolPrimitive> TakeGpuPool(const Device& device, const PoolDesc& desc) {
  if (!PoolFits32Bits(desc)) return Unsupported{"the images have 2^30 pixels or channels, or more"};
  return std::make_unique<PoolOfThreads>(device, desc);
}

const RegisterKernel<PoolDesc, PoolPrimitive> kPool({DeviceKind::kCuda, priority::kReference,
                                                     "a thread per output", TakeGpuPool});

}  // namespace
}  // namespace trainer::cuda

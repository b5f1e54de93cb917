#include <cfloat>

#include "cpu/pool.h"

namespace trainer::cpu {
namespace {

// W holds the winner's place inside its window, or its largest value for none.
template <class W>
class MaxPool final : public FastPool {
 public:
  using FastPool::FastPool;

  size_t WorkspaceBytes() const override {
    return desc_.training ? static_cast<size_t>(desc_.OutShape().Count()) * sizeof(W) : 0;
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    Expect(x, y, workspace.size(), WorkspaceBytes());
    W* winners = desc_.training ? reinterpret_cast<W*>(workspace.data()) : nullptr;
    WithType(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        ForwardRows<T, typename decltype(lanes)::Type>(x.As<T>(), y.As<T>(), winners);
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    Expect(dx, dy, workspace.size(), WorkspaceBytes());
    const W* winners = reinterpret_cast<const W*>(workspace.data());
    WithType(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        using V = typename decltype(lanes)::Type;
        if (Tiles()) return SpreadRows<T, V>(dy.As<T>(), winners, dx.As<T>());
        BackwardRows<T, V>(dy.As<T>(), winners, dx.As<T>());
      });
    });
  }

  void Winners(std::span<const std::byte> workspace, Tensor mask) override {
    const W* winners = reinterpret_cast<const W*>(workspace.data());
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    WithType(mask.dtype, [&](auto type) {
      using T = typename decltype(type)::Type;
      for (int64_t row = 0; row < desc_.batch * desc_.out_h; ++row) {
        ForRow(row, [&](int64_t out, const Reach& h, const Reach& w) {
          for (int64_t i = out * channels; i < (out + 1) * channels; ++i) {
            const int64_t tap = winners[i];
            const int64_t at = (h.start + tap / kernel_w) * in_w + w.start + tap % kernel_w;
            Store(mask.As<T>()[i], winners[i] == kNone ? -1.0f : static_cast<float>(at));
          }
        });
      }
    });
  }

 private:
  static constexpr W kNone = static_cast<W>(-1);

  template <class T, class V>
  void ForwardRows(const T* x, T* y, W* winners) const {
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    const int64_t in_h = desc_.in_h, out_h = desc_.out_h;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const T* image = x + r / out_h * in_h * in_w * channels;
      ForRow(
          r, [&](int64_t out, const Reach& h, const Reach& w) __attribute__((always_inline)) {
            ForBlocks<V::kLanes>(
                channels, [&](int64_t c) __attribute__((always_inline)) {
                  typename V::F best = typename V::F{} - FLT_MAX;
                  typename V::I winner = typename V::I{} - 1;
                  for (int64_t i = h.begin; i < h.end; ++i) {
                    for (int64_t j = w.begin; j < w.end; ++j) {
                      typename V::F value;
                      V::LoadTo(value, image + (i * in_w + j) * channels + c);
                      const auto tap = static_cast<int32_t>((i - h.start) * kernel_w + j - w.start);
                      const typename V::I wins = value > best;
                      best = wins ? value : best;
                      winner = wins ? typename V::I{} + tap : winner;
                    }
                  }
                  V::StoreTo(y + out * channels + c, best);
                  if (winners != nullptr) V::StoreInts(winners + out * channels + c, winner);
                });
          });
    };
    ParallelLanes<V>(desc_.batch * out_h, row, RowGrain(desc_.out_w * channels));
  }

  // Whether each input place lies in just one window.
  bool Tiles() const {
    const PoolDesc& d = desc_;
    return d.pad_h == 0 && d.pad_w == 0 && d.kernel_h == d.stride_h && d.kernel_w == d.stride_w &&
           d.out_h * d.stride_h >= d.in_h && d.out_w * d.stride_w >= d.in_w;
  }

  // Backward for tiles: each window is read once and writes all of its places.
  template <class T, class V>
  void SpreadRows(const T* dy, const W* winners, T* dx) const {
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    const int64_t in_h = desc_.in_h, out_h = desc_.out_h;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      T* image = dx + r / out_h * in_h * in_w * channels;
      ForRow(
          r, [&](int64_t out, const Reach& h, const Reach& w) __attribute__((always_inline)) {
            ForBlocks<V::kLanes>(
                channels, [&](int64_t c) __attribute__((always_inline)) {
                  typename V::I winner;
                  typename V::F grad;
                  V::LoadInts(winner, winners + out * channels + c);
                  V::LoadTo(grad, dy + out * channels + c);
                  for (int64_t i = h.begin; i < h.end; ++i) {
                    for (int64_t j = w.begin; j < w.end; ++j) {
                      const auto tap = static_cast<int32_t>((i - h.start) * kernel_w + j - w.start);
                      const typename V::F part = winner == tap ? grad : typename V::F{};
                      V::StoreTo(image + (i * in_w + j) * channels + c, part);
                    }
                  }
                });
          });
    };
    ParallelLanes<V>(desc_.batch * out_h, row, RowGrain(desc_.out_w * channels));
  }

  template <class T, class V>
  void BackwardRows(const T* dy, const W* winners, T* dx) const {
    const int64_t channels = desc_.channels, in_h = desc_.in_h, in_w = desc_.in_w;
    const int64_t out_h = desc_.out_h, out_w = desc_.out_w, kernel_w = desc_.kernel_w;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const int64_t i = r % in_h, first = r / in_h * out_h * out_w;
      const Cover& h = high_.cover[i];
      for (int64_t j = 0; j < in_w; ++j) {
        const Cover& w = wide_.cover[j];
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F sum = {};
              for (int64_t oh = h.first; oh < h.last; ++oh) {
                for (int64_t ow = w.first; ow < w.last; ++ow) {
                  const int64_t out = (first + oh * out_w + ow) * channels + c;
                  const auto tap = static_cast<int32_t>((i - high_.reach[oh].start) * kernel_w + j -
                                                        wide_.reach[ow].start);
                  typename V::I winner;
                  typename V::F grad;
                  V::LoadInts(winner, winners + out);
                  V::LoadTo(grad, dy + out);
                  sum += winner == tap ? grad : typename V::F{};
                }
              }
              V::StoreTo(dx + (r * in_w + j) * channels + c, sum);
            });
      }
    };
    ParallelLanes<V>(desc_.batch * in_h, row, RowGrain(in_w * channels));
  }
};

}  // namespace

std::unique_ptr<PoolPlan> MakeMaxPool(const PoolDesc& desc) {
  // One byte holds the places of windows up to 255, and 255 for none.
  if (desc.kernel_h * desc.kernel_w <= 255) return std::make_unique<MaxPool<uint8_t>>(desc);
  return std::make_unique<MaxPool<int32_t>>(desc);
}

}  // namespace trainer::cpu

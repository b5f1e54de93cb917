#include "cpu/pool/fast_pool.h"

namespace trainer::cpu {
namespace {

// Finds the first largest pixel of each window. Its index is a number of type W, kNoWinner if no
// value of the window exceeds PoolDesc::Start.
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
    DispatchCpuDtype(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        ForwardRows<T, typename decltype(lanes)::Type>(x.As<T>(), y.As<T>(), winners);
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    Expect(dx, dy, workspace.size(), WorkspaceBytes());
    const W* winners = reinterpret_cast<const W*>(workspace.data());
    DispatchCpuDtype(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        using V = typename decltype(lanes)::Type;
        if (Tiles()) return ScatterRows<T, V>(dy.As<T>(), winners, dx.As<T>());
        BackwardRows<T, V>(dy.As<T>(), winners, dx.As<T>());
      });
    });
  }

  void ArgMax(std::span<const std::byte> workspace, Tensor mask) override {
    const W* winners = reinterpret_cast<const W*>(workspace.data());
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    DispatchCpuDtype(mask.dtype, [&](auto type) {
      using T = typename decltype(type)::Type;
      for (int64_t row = 0; row < desc_.batch * desc_.out_h; ++row) {
        ForWindows<Lanes<1>, kFixed>(row, [&](const Grid& grid, auto, auto) {
          for (int64_t i = grid.result * channels; i < (grid.result + 1) * channels; ++i) {
            const int64_t tap = winners[i];
            const int64_t at =
                (grid.h->start + tap / kernel_w) * in_w + grid.w->start + tap % kernel_w;
            Store(mask.As<T>()[i], winners[i] == kNoWinner<W> ? -1.0f : static_cast<float>(at));
          }
        });
      }
    });
  }

 private:
  static constexpr bool kFixed = sizeof(W) == 1;  // larger windows have no fixed lengths

  // Computes all rows of y, and the winners unless `winners` is null.
  template <class T, class V>
  void ForwardRows(const T* x, T* y, W* winners) const {
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    const int64_t image = desc_.in_h * in_w * channels, out_h = desc_.out_h;
    const float start = desc_.Start();
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const auto window = [=](const Grid& grid, auto rows, auto columns)
          __attribute__((always_inline)) {
        const T* const from = x + r / out_h * image + grid.first * channels;
        const int64_t to = grid.result * channels;
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F best = typename V::F{} + start;
              typename V::I winner = typename V::I{} - 1;
              ForGrid<rows, columns>(
                  grid, [&](int64_t a, int64_t b) __attribute__((always_inline)) {
                    typename V::F value;
                    V::LoadTo(value, from + (a * in_w + b) * channels + c);
                    const auto tap = static_cast<int32_t>(grid.tap + a * kernel_w + b);
                    const typename V::I wins = value > best;
                    best = wins ? value : best;
                    winner = wins ? typename V::I{} + tap : winner;
                  });
              V::StoreTo(y + to + c, best);
              if (winners != nullptr) V::StoreInts(winners + to + c, winner);
            });
      };
      ForWindows<V, kFixed>(r, window);
    };
    ParallelLanes<V>(desc_.batch * out_h, MinChunk(desc_.out_w * channels), false, row);
  }

  // Returns whether each input pixel is in exactly one window.
  bool Tiles() const {
    const PoolDesc& d = desc_;
    return d.pad_h == 0 && d.pad_w == 0 && d.kernel_h == d.stride_h && d.kernel_w == d.stride_w &&
           d.out_h * d.stride_h >= d.in_h && d.out_w * d.stride_w >= d.in_w;
  }

  // Backward pass for tiles: each window is read once and writes all of its pixels.
  template <class T, class V>
  void ScatterRows(const T* dy, const W* winners, T* dx) const {
    const int64_t channels = desc_.channels, kernel_w = desc_.kernel_w, in_w = desc_.in_w;
    const int64_t image = desc_.in_h * in_w * channels, out_h = desc_.out_h;
    const bool stream = StreamsTo<V>(dx, desc_.InShape());
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const auto window = [=](const Grid& grid, auto rows, auto columns)
          __attribute__((always_inline)) {
        T* const to = dx + r / out_h * image + grid.first * channels;
        const int64_t from = grid.result * channels;
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F grad;
              V::LoadTo(grad, dy + from + c);
              ForGrid<rows, columns>(
                  grid, [&](int64_t a, int64_t b) __attribute__((always_inline)) {
                    typename V::F part = {};
                    V::AddWhere(part, grad, winners + from + c, grid.tap + a * kernel_w + b);
                    StoreOrStream<V>(stream, to + (a * in_w + b) * channels + c, part);
                  });
            });
      };
      ForWindows<V, kFixed>(r, window);
    };
    ParallelLanes<V>(desc_.batch * out_h, MinChunk(desc_.out_w * channels), stream, row);
  }

  // Backward pass for overlapping windows: each pixel sums dy over the windows that it has won.
  template <class T, class V>
  void BackwardRows(const T* dy, const W* winners, T* dx) const {
    const int64_t channels = desc_.channels, in_h = desc_.in_h, out_w = desc_.out_w;
    const int64_t image = desc_.out_h * out_w * channels;
    const int64_t tap_row = desc_.stride_h * desc_.kernel_w, tap_column = desc_.stride_w;
    const bool stream = StreamsTo<V>(dx, desc_.InShape());
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const auto pixel = [=](const Grid& grid, auto rows, auto columns)
          __attribute__((always_inline)) {
        const int64_t from = r / in_h * image + grid.first * channels;
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F sum = {};
              ForGrid<rows, columns>(
                  grid, [&](int64_t a, int64_t b) __attribute__((always_inline)) {
                    const int64_t at = from + (a * out_w + b) * channels + c;
                    typename V::F grad;
                    V::LoadTo(grad, dy + at);
                    V::AddWhere(sum, grad, winners + at, grid.tap - a * tap_row - b * tap_column);
                  });
              StoreOrStream<V>(stream, dx + grid.result * channels + c, sum);
            });
      };
      ForPixels<V, kFixed>(r, pixel);
    };
    ParallelLanes<V>(desc_.batch * in_h, MinChunk(desc_.in_w * channels), stream, row);
  }
};

}  // namespace

std::unique_ptr<PoolPrimitive> MakeMaxPool(const PoolDesc& desc) {
  if (HasByteTaps(desc)) return std::make_unique<MaxPool<uint8_t>>(desc);
  return std::make_unique<MaxPool<int32_t>>(desc);
}

}  // namespace trainer::cpu

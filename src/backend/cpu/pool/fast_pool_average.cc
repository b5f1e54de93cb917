#include "cpu/pool/fast_pool.h"

namespace trainer::cpu {
namespace {

// Divides sums by the area of the window, which includes padding.
class AveragePool final : public FastPool {
 public:
  explicit AveragePool(const PoolDesc& desc) : FastPool(desc) {
    for (int64_t area = 0; area <= desc.kernel_h * desc.kernel_w; ++area) {
      inverse_.push_back(1 / static_cast<float>(area));
    }
  }

  size_t WorkspaceBytes() const override { return 0; }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte>) override {
    Expect(x, y, 0, 0);
    DispatchCpuDtype(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        ForwardRows<T, typename decltype(lanes)::Type>(x.As<T>(), y.As<T>());
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte>) override {
    Expect(dx, dy, 0, 0);
    DispatchCpuDtype(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        BackwardRows<T, typename decltype(lanes)::Type>(dy.As<T>(), dx.As<T>());
      });
    });
  }

  void ArgMax(std::span<const std::byte>, Tensor) override {
    throw Error(ErrorCode::kInternal, "an average pool has no winners");
  }

 private:
  // Computes all rows of y.
  template <class T, class V>
  void ForwardRows(const T* x, T* y) const {
    const int64_t channels = desc_.channels, in_w = desc_.in_w, out_h = desc_.out_h;
    const int64_t image = desc_.in_h * in_w * channels;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const auto window = [=](const Grid& grid, auto rows, auto columns)
          __attribute__((always_inline)) {
        const T* const from = x + r / out_h * image + grid.first * channels;
        // the result is 0 / 0 if the window is outside even the padding
        const float area = static_cast<float>(grid.h->length * grid.w->length);
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F sum = {};
              ForGrid<rows, columns>(
                  grid, [&](int64_t a, int64_t b) __attribute__((always_inline)) {
                    typename V::F value;
                    V::LoadTo(value, from + (a * in_w + b) * channels + c);
                    sum += value;
                  });
              V::StoreTo(y + grid.result * channels + c, sum / area);
            });
      };
      ForWindows<V, true>(r, window);
    };
    ParallelLanes<V>(desc_.batch * out_h, MinChunk(desc_.out_w * channels), false, row);
  }

  // Computes all rows of dx: each pixel sums dy / area over its windows.
  template <class T, class V>
  void BackwardRows(const T* dy, T* dx) const {
    const int64_t channels = desc_.channels, in_h = desc_.in_h, out_w = desc_.out_w;
    const int64_t image = desc_.out_h * out_w * channels;
    const float* const inverse = inverse_.data();
    const bool stream = StreamsTo<V>(dx, desc_.InShape());
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const auto pixel = [=](const Grid& grid, auto rows, auto columns)
          __attribute__((always_inline)) {
        const T* const from = dy + r / in_h * image + grid.first * channels;
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F sum = {};
              ForGrid<rows, columns>(
                  grid, [&](int64_t a, int64_t b) __attribute__((always_inline)) {
                    typename V::F grad;
                    V::LoadTo(grad, from + (a * out_w + b) * channels + c);
                    sum += grad * inverse[grid.h[a].length * grid.w[b].length];
                  });
              StoreOrStream<V>(stream, dx + grid.result * channels + c, sum);
            });
      };
      ForPixels<V, true>(r, pixel);
    };
    ParallelLanes<V>(desc_.batch * in_h, MinChunk(desc_.in_w * channels), stream, row);
  }

  std::vector<float> inverse_;  // by area
};

}  // namespace

std::unique_ptr<PoolPrimitive> MakeAveragePool(const PoolDesc& desc) {
  return std::make_unique<AveragePool>(desc);
}

}  // namespace trainer::cpu

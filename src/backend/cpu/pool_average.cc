#include "cpu/pool.h"

namespace trainer::cpu {
namespace {

class AveragePool final : public FastPool {
 public:
  using FastPool::FastPool;

  size_t WorkspaceBytes() const override { return 0; }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte>) override {
    Expect(x, y, 0, 0);
    WithType(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        ForwardRows<T, typename decltype(lanes)::Type>(x.As<T>(), y.As<T>());
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte>) override {
    Expect(dx, dy, 0, 0);
    WithType(desc_.dtype, [&](auto type) {
      WithLanes(desc_.channels, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        BackwardRows<T, typename decltype(lanes)::Type>(dy.As<T>(), dx.As<T>());
      });
    });
  }

  void Winners(std::span<const std::byte>, Tensor) override {
    throw Error(ErrorCode::kInternal, "an average pool has no winners");
  }

 private:
  template <class T, class V>
  void ForwardRows(const T* x, T* y) const {
    const int64_t channels = desc_.channels, in_w = desc_.in_w;
    const int64_t in_h = desc_.in_h, out_h = desc_.out_h;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const T* image = x + r / out_h * in_h * in_w * channels;
      ForRow(
          r, [&](int64_t out, const Reach& h, const Reach& w) __attribute__((always_inline)) {
            // 0 / 0 where the window lies outside even the padding.
            const float area = static_cast<float>(h.length * w.length);
            ForBlocks<V::kLanes>(
                channels, [&](int64_t c) __attribute__((always_inline)) {
                  typename V::F sum = {};
                  for (int64_t i = h.begin; i < h.end; ++i) {
                    for (int64_t j = w.begin; j < w.end; ++j) {
                      typename V::F value;
                      V::LoadTo(value, image + (i * in_w + j) * channels + c);
                      sum += value;
                    }
                  }
                  V::StoreTo(y + out * channels + c, sum / area);
                });
          });
    };
    ParallelLanes<V>(desc_.batch * out_h, row, RowGrain(desc_.out_w * channels));
  }

  template <class T, class V>
  void BackwardRows(const T* dy, T* dx) const {
    const int64_t channels = desc_.channels, in_h = desc_.in_h, in_w = desc_.in_w;
    const int64_t out_h = desc_.out_h, out_w = desc_.out_w;
    const auto row = [ =, this ](int64_t r) __attribute__((always_inline)) {
      const int64_t first = r / in_h * out_h * out_w;
      const Cover& h = high_.cover[r % in_h];
      for (int64_t j = 0; j < in_w; ++j) {
        const Cover& w = wide_.cover[j];
        ForBlocks<V::kLanes>(
            channels, [&](int64_t c) __attribute__((always_inline)) {
              typename V::F sum = {};
              for (int64_t oh = h.first; oh < h.last; ++oh) {
                for (int64_t ow = w.first; ow < w.last; ++ow) {
                  typename V::F grad;
                  V::LoadTo(grad, dy + (first + oh * out_w + ow) * channels + c);
                  sum += grad / static_cast<float>(high_.reach[oh].length * wide_.reach[ow].length);
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

std::unique_ptr<PoolPlan> MakeAveragePool(const PoolDesc& desc) {
  return std::make_unique<AveragePool>(desc);
}

}  // namespace trainer::cpu

#include <cstring>
#include <vector>

#include "pool_math.h"

namespace trainer {
namespace {

// The rules of PoolDesc in plain loops. The workspace holds each winner's position in the input
// plane.
class ReferencePool final : public PoolPrimitive {
 public:
  explicit ReferencePool(const PoolDesc& desc) : desc_(desc) {}

  std::string kernel() const override { return "reference loops"; }
  size_t WorkspaceBytes() const override {
    if (desc_.method == PoolMethod::kAverage || !desc_.training) return 0;
    return static_cast<size_t>(desc_.OutShape().Count()) * sizeof(int32_t);
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    auto* const winners =
        WorkspaceBytes() > 0 ? reinterpret_cast<int32_t*>(workspace.data()) : nullptr;
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (desc_.method == PoolMethod::kMax) {
        ForEachOut(MaxOfWindow<T>{desc_, x.As<T>(), y.As<T>(), winners});
      } else {
        ForEachOut(AverageOfWindow<T>{desc_, x.As<T>(), y.As<T>()});
      }
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<float> sum(dx.Count(), 0.0f);
      ForEachOut([&](int64_t n, int64_t oh, int64_t ow, int64_t c) {
        const int64_t out = PoolOut(desc_, n, oh, ow, c);
        const float grad = Load(dy.As<T>()[out]);
        if (desc_.method == PoolMethod::kMax) {
          const int32_t winner = Winner(workspace, out);
          if (winner >= 0) sum[PoolIn(desc_, n, winner, c)] += grad;
          return;
        }
        const PoolWindow window = PoolWindowAt(desc_, oh, ow);
        for (int32_t h = window.h0; h < window.h1; ++h) {
          for (int32_t w = window.w0; w < window.w1; ++w) {
            sum[PoolIn(desc_, n, h * desc_.in_w + w, c)] += grad / window.area;
          }
        }
      });
      for (size_t i = 0; i < sum.size(); ++i) Store(dx.As<T>()[i], sum[i]);
    });
  }

  void ArgMax(std::span<const std::byte> workspace, Tensor mask) override {
    DispatchDtype(mask.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      for (int64_t i = 0; i < mask.Count(); ++i) {
        Store(mask.As<T>()[i], static_cast<float>(Winner(workspace, i)));
      }
    });
  }

 private:
  // Returns the winner's position in the input plane; -1 if there is none.
  static int32_t Winner(std::span<const std::byte> workspace, int64_t out) {
    int32_t winner = 0;
    std::memcpy(&winner, workspace.data() + out * sizeof(int32_t), sizeof(winner));
    return winner;
  }

  // Calls f(image, oh, ow, channel) for every output.
  template <class F>
  void ForEachOut(F f) const {
    for (int64_t n = 0; n < desc_.batch; ++n) {
      for (int64_t oh = 0; oh < desc_.out_h; ++oh) {
        for (int64_t ow = 0; ow < desc_.out_w; ++ow) {
          for (int64_t c = 0; c < desc_.channels; ++c) f(n, oh, ow, c);
        }
      }
    }
  }

  PoolDesc desc_;
};

}  // namespace

std::unique_ptr<PoolPrimitive> MakeReferencePool(const PoolDesc& desc) {
  return std::make_unique<ReferencePool>(desc);
}

}  // namespace trainer

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trainer/backend/pool.h"

namespace trainer {
namespace {

// A window: the part inside the image, and the area that an average divides by.
struct Window {
  int64_t h0, h1, w0, w1;
  float area;
};

Window WindowAt(const PoolDesc& d, int64_t oh, int64_t ow) {
  const int64_t h0 = oh * d.stride_h - d.pad_h, w0 = ow * d.stride_w - d.pad_w;
  const int64_t h1 = std::min(h0 + d.kernel_h, d.in_h + d.pad_h);
  const int64_t w1 = std::min(w0 + d.kernel_w, d.in_w + d.pad_w);
  const int64_t area = std::max<int64_t>(h1 - h0, 0) * std::max<int64_t>(w1 - w0, 0);
  return {std::max<int64_t>(h0, 0), std::min(h1, d.in_h), std::max<int64_t>(w0, 0),
          std::min(w1, d.in_w), static_cast<float>(area)};
}

class ReferencePool final : public PoolPlan {
 public:
  explicit ReferencePool(const PoolDesc& desc) : desc_(desc) {}

  std::string Implementation() const override { return "reference loops"; }
  size_t WorkspaceBytes() const override {
    if (desc_.method == PoolMethod::kAverage || !desc_.training) return 0;
    return static_cast<size_t>(desc_.OutShape().Count()) * sizeof(int32_t);
  }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachOut([&](int64_t n, int64_t c, const Window& w, int64_t out) {
        float value = desc_.method == PoolMethod::kMax ? -FLT_MAX : 0.0f;
        int32_t winner = -1;
        for (int64_t h = w.h0; h < w.h1; ++h) {
          for (int64_t i = w.w0; i < w.w1; ++i) {
            const float at = Load(x.As<T>()[In(n, h * desc_.in_w + i, c)]);
            if (desc_.method == PoolMethod::kAverage) {
              value += at;
            } else if (at > value) {
              value = at;
              winner = static_cast<int32_t>(h * desc_.in_w + i);
            }
          }
        }
        if (desc_.method == PoolMethod::kAverage) value /= w.area;
        Store(y.As<T>()[out], value);
        if (WorkspaceBytes() > 0) {
          std::memcpy(workspace.data() + out * sizeof(int32_t), &winner, sizeof(winner));
        }
      });
    });
  }

  void Backward(ConstTensor dy, Tensor dx, std::span<const std::byte> workspace) override {
    WithType(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<float> sum(dx.Count(), 0.0f);
      ForEachOut([&](int64_t n, int64_t c, const Window& w, int64_t out) {
        const float grad = Load(dy.As<T>()[out]);
        if (desc_.method == PoolMethod::kMax) {
          const int32_t winner = Winner(workspace, out);
          if (winner >= 0) sum[In(n, winner, c)] += grad;
          return;
        }
        for (int64_t h = w.h0; h < w.h1; ++h) {
          for (int64_t i = w.w0; i < w.w1; ++i) sum[In(n, h * desc_.in_w + i, c)] += grad / w.area;
        }
      });
      for (size_t i = 0; i < sum.size(); ++i) Store(dx.As<T>()[i], sum[i]);
    });
  }

  void Winners(std::span<const std::byte> workspace, Tensor mask) override {
    WithType(mask.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      for (int64_t i = 0; i < mask.Count(); ++i) {
        Store(mask.As<T>()[i], static_cast<float>(Winner(workspace, i)));
      }
    });
  }

 private:
  static int32_t Winner(std::span<const std::byte> workspace, int64_t out) {
    int32_t winner = 0;
    std::memcpy(&winner, workspace.data() + out * sizeof(int32_t), sizeof(winner));
    return winner;
  }

  int64_t In(int64_t n, int64_t place, int64_t c) const {
    return (n * desc_.in_h * desc_.in_w + place) * desc_.channels + c;
  }

  template <class F>
  void ForEachOut(F f) const {
    int64_t out = 0;
    for (int64_t n = 0; n < desc_.batch; ++n) {
      for (int64_t oh = 0; oh < desc_.out_h; ++oh) {
        for (int64_t ow = 0; ow < desc_.out_w; ++ow) {
          const Window window = WindowAt(desc_, oh, ow);
          for (int64_t c = 0; c < desc_.channels; ++c) f(n, c, window, out++);
        }
      }
    }
  }

  PoolDesc desc_;
};

}  // namespace

std::unique_ptr<PoolPlan> MakeReferencePool(const PoolDesc& desc) {
  return std::make_unique<ReferencePool>(desc);
}

}  // namespace trainer

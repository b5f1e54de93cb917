#include <algorithm>
#include <cfloat>
#include <vector>

#include "cpu/lanes.h"
#include "cpu/plans.h"
#include "trainer/backend/parallel_for.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cpu {
namespace {

// Along one axis, where a window lies: it starts at `start`, covers [begin, end) of the image, and
// counts `length` for an average.
struct Reach {
  int64_t start, begin, end, length;
};
// The windows [first, last) that may cover one input place.
struct Cover {
  int64_t first, last;
};

struct Axis {
  Axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) : cover(in, {out, 0}) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t start = o * stride - pad, stop = std::min(start + kernel, in + pad);
      reach.push_back({start, std::max<int64_t>(start, 0), std::min(stop, in),
                       std::max<int64_t>(stop - start, 0)});
      for (int64_t i = reach.back().begin; i < reach.back().end; ++i) {
        cover[i] = {std::min(cover[i].first, o), o + 1};
      }
    }
  }

  std::vector<Reach> reach;
  std::vector<Cover> cover;
};

int64_t RowGrain(int64_t row) { return std::max<int64_t>(1, parallel_for_internal::kGrain / row); }

// Loops over the channels of NHWC in vectors; threads take rows. Both directions only overwrite:
// a backward row gathers from the windows that cover it, in the order of the windows.
class FastPool : public PoolPlan {
 public:
  explicit FastPool(const PoolDesc& d)
      : desc_(d),
        high_(d.in_h, d.out_h, d.kernel_h, d.stride_h, d.pad_h),
        wide_(d.in_w, d.out_w, d.kernel_w, d.stride_w, d.pad_w) {}

  std::string Implementation() const override { return "channel vectors"; }

 protected:
  void Expect(const ConstTensor& x, const ConstTensor& y, size_t workspace, size_t needed) const {
    if (x.shape == desc_.InShape() && y.shape == desc_.OutShape() && x.dtype == desc_.dtype &&
        y.dtype == desc_.dtype && workspace >= needed) {
      return;
    }
    throw Error(ErrorCode::kInternal,
                Join("pooling planned for ", desc_.InShape().ToString(), " ", NameOf(desc_.dtype),
                     " -> ", desc_.OutShape().ToString(), " with ", needed, " bytes got ",
                     x.shape.ToString(), " -> ", y.shape.ToString(), " with ", workspace));
  }

  // f(window place in y, row's reach, column's reach) for one row of windows.
  template <class F>
  TRAINER_INLINE void ForRow(int64_t row, F f) const {
    const Reach& h = high_.reach[row % desc_.out_h];
    for (int64_t ow = 0; ow < desc_.out_w; ++ow) f(row * desc_.out_w + ow, h, wide_.reach[ow]);
  }

  PoolDesc desc_;
  Axis high_, wide_;
};

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
        BackwardRows<T, typename decltype(lanes)::Type>(dy.As<T>(), winners, dx.As<T>());
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
            ForBlocks<sizeof(typename V::F) / 4>(
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
    ParallelFor(desc_.batch * out_h, row, RowGrain(desc_.out_w * channels));
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
        ForBlocks<sizeof(typename V::F) / 4>(
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
    ParallelFor(desc_.batch * in_h, row, RowGrain(in_w * channels));
  }
};

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
            ForBlocks<sizeof(typename V::F) / 4>(
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
    ParallelFor(desc_.batch * out_h, row, RowGrain(desc_.out_w * channels));
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
        ForBlocks<sizeof(typename V::F) / 4>(
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
    ParallelFor(desc_.batch * in_h, row, RowGrain(in_w * channels));
  }
};

}  // namespace

std::unique_ptr<PoolPlan> MakePool(const PoolDesc& desc) {
  if (desc.method == PoolMethod::kAverage) return std::make_unique<AveragePool>(desc);
  // One byte holds the places of windows up to 255, and 255 for none.
  if (desc.kernel_h * desc.kernel_w <= 255) return std::make_unique<MaxPool<uint8_t>>(desc);
  return std::make_unique<MaxPool<int32_t>>(desc);
}

}  // namespace trainer::cpu

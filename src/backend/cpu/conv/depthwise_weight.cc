#include <algorithm>

#include "cpu/conv/depthwise.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer::cpu {
namespace {

// Computes the gradients of the weight and the bias. Each part sums its lines into its own
// gradient; the parts are then added in a fixed order.
class DepthwiseBackwardWeight final : public ConvBackwardWeight {
 public:
  explicit DepthwiseBackwardWeight(const ConvDesc& desc)
      : desc_(desc),
        channels_(desc.in_channels),
        lanes_(LanesFor(channels_)),
        wide_((channels_ + lanes_ - 1) / lanes_ * lanes_),
        width_(desc.in[1]),
        image_(desc.in[0] * desc.in[1] * channels_),
        out_width_(desc.Out()[1]),
        out_height_(desc.Out()[0]),
        threads_(TeamSize()),
        rows_(ForwardRows(desc)) {}

  std::string Name() const override { return "own depthwise"; }
  size_t ScratchBytes() const override { return threads_ * Part() * sizeof(float); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    float* sums = reinterpret_cast<float*>(scratch.data());
    DispatchCpuDtype(desc_.dtype, [&](auto type) {
      WithLanes(channels_, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        using V = typename decltype(lanes)::Type;
        const auto run = desc_.stride[1] == 1 ? &DepthwiseBackwardWeight::RunParts<T, V, 1>
                                              : &DepthwiseBackwardWeight::RunParts<T, V, 2>;
        (this->*run)(x, dy, sums);
      });
    });
    for (int tap = 0; tap < kTaps; ++tap) AddParts(sums + tap * wide_, dweight + tap, kTaps);
    if (desc_.bias && dbias != nullptr) AddParts(sums + kTaps * wide_, dbias, 1);
  }

 private:
  // Returns the number of floats in a part's sums: (9 + 1, C wide), where the last row sums dy.
  int64_t Part() const { return (kTaps + 1) * wide_; }

  template <class V>
  struct Sums {
    typename V::F of[kTaps + 1];
  };

  // Computes the sums of all parts, one per thread, for stride S.
  template <class T, class V, int S>
  void RunParts(const void* x, const void* dy, float* sums) const {
    const auto part = [ =, this ](int64_t p) __attribute__((always_inline)) {
      const int64_t lines = desc_.batch * out_height_, end = lines * (p + 1) / threads_;
      float* own = sums + p * Part();
      std::fill_n(own, Part(), 0.0f);
      for (int64_t at = lines * p / threads_; at < end;) {
        const int64_t line = at % out_height_;
        const int64_t count = std::min({TileLines(), out_height_ - line, end - at});
        const T* image = static_cast<const T*>(x) + at / out_height_ * image_;
        const T* grads = static_cast<const T*>(dy) + at * out_width_ * channels_;
        for (int64_t j = 0; j < out_width_; j += kTileWidth) {
          AddTile<T, V, S>(image, rows_.data() + line, grads, count, j, own);
        }
        at += count;
      }
    };
    ParallelLanes<V>(threads_, 1, false, part);
  }

  // Pixels that are summed in registers before the sums are stored: enough to make the stores
  // cheap, and few enough to stay in the nearest caches while all channels pass over them.
  static constexpr int64_t kTileWidth = 14;
  // Returns the number of lines of a tile: several if they are not longer than kTileWidth.
  int64_t TileLines() const { return std::max<int64_t>(1, 2 * kTileWidth / out_width_); }

  // Adds the contribution of pixels [begin, begin + kTileWidth) of `count` lines.
  template <class T, class V, int S>
  TRAINER_INLINE void AddTile(const T* image, const DepthwiseRows* rows, const T* grads,
                              int64_t count, int64_t begin, float* sums) const {
    const int64_t end = std::min(begin + kTileWidth, out_width_);
    for (int64_t block = 0; block < wide_; block += V::kLanes) {
      const int64_t c = std::min(block, channels_ - V::kLanes);
      Sums<V> sum = {};
      for (int64_t i = 0; i < count; ++i) {
        AddLine<T, V, S>(image + c, rows[i], grads + i * out_width_ * channels_ + c, begin, end,
                         sum);
      }
      for (int k = 0; k <= kTaps; ++k) AddVector<V>(sum.of[k], sums + k * wide_ + block);
    }
  }

  // Adds the contribution of pixels [begin, end) of a line of dy, for one vector of channels. The
  // three columns of x under the kernel move through registers.
  template <class T, class V, int S>
  TRAINER_INLINE void AddLine(const T* image, const DepthwiseRows& rows, const T* grads,
                              int64_t begin, int64_t end, Sums<V>& sum) const {
    using F = typename V::F;
    const int64_t channels = channels_, width = width_;
    int64_t column = begin * S - desc_.pad[1];
    F window[3][3];
    const auto next = [&](int k) __attribute__((always_inline)) {
      const bool inside = column >= 0 && column < width;
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) {
        window[r][k] = F{};
        if (!inside || rows.at[r] < 0) continue;
        const T* at = image + rows.at[r] + column * channels;
        V::LoadTo(window[r][k], at);
        if (DepthwiseWindow<S, false>::IsNew(r)) PrefetchAhead(at);
      }
      ++column;
    };
    if (S == 1) next(1);
    next(2);
    for (int64_t j = begin; j < end; ++j) {
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) {
        window[r][0] = window[r][S];
        if (S == 1) window[r][1] = window[r][2];
      }
      if (S == 2) next(1);
      next(2);
      F grad;
      V::LoadTo(grad, grads + j * channels);
      PrefetchAhead(grads + j * channels);
      sum.of[kTaps] += grad;
#pragma GCC unroll 9
      for (int k = 0; k < kTaps; ++k) sum.of[k] += window[k / 3][k % 3] * grad;
    }
  }

  // Adds a vector to `to` in memory.
  template <class V>
  static TRAINER_INLINE void AddVector(const typename V::F& value, float* to) {
    typename V::F sum;
    V::LoadTo(sum, to);
    V::StoreTo(to, sum + value);
  }

  // Adds a row of the sums of all parts, in the order of the parts, to to[c * step]. The last
  // vector of a wide row ends with the last channel.
  void AddParts(const float* sums, float* to, int64_t step) const {
    for (int64_t c = 0; c < channels_; ++c) {
      const int64_t at = c < wide_ - lanes_ ? c : c + wide_ - channels_;
      float sum = 0;
      for (int part = 0; part < threads_; ++part) sum += sums[part * Part() + at];
      to[c * step] += sum;
    }
  }

  ConvDesc desc_;
  int64_t channels_, lanes_;
  int64_t wide_;  // channels rounded up to whole vectors
  int64_t width_, image_, out_width_, out_height_;
  int threads_;
  std::vector<DepthwiseRows> rows_;  // by row of dy
};

// Accepts a convolution unless DepthwiseRefuses gives a reason.
KernelOrReason<ConvBackwardWeight> TakeDepthwiseWeight(const Device&, const ConvDesc& desc) {
  if (auto why = DepthwiseRefuses(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<DepthwiseBackwardWeight>(desc);
}

const RegisterConvKernel<ConvBackwardWeight> kConvDepthwiseWeight({DeviceKind::kCpu, priority::kOwn,
                                                                   "own depthwise",
                                                                   TakeDepthwiseWeight});

}  // namespace
}  // namespace trainer::cpu

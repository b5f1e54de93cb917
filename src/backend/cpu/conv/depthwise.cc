#include "cpu/conv/depthwise.h"

#include <algorithm>

#include "trainer/backend/loops/nontemporal.h"

namespace trainer::cpu {
namespace {

// Computes y = max(0, y); NaN is kept.
void Rectify(void* y, int64_t count, DType dtype) {
  DispatchCpuDtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const at = static_cast<T*>(y);
    ParallelFor(
        count, [=](int64_t i) __attribute__((always_inline)) {
          const float v = Load(at[i]);
          Store(at[i], v <= 0 ? 0.0f : v);
        });
  });
}

// The operands of a pass over the targets: the forward pass computes y from x, the backward pass dx
// from dy.
struct Operands {
  const void* source;
  const float *weight, *start;  // (9, C) and (C); the sums start from `start`
  const void* zeros;            // (C), used for pixels outside the source
  void* target;
  bool stream;  // write whole cache lines past the caches
};

// The forward pass, or the data gradient if `back`: both compute each target pixel from a window of
// source pixels.
class DepthwisePass {
 public:
  DepthwisePass(const ConvDesc& desc, bool back)
      : batch_(desc.batch),
        channels_(desc.in_channels),
        stride_(desc.stride[1]),
        pad_(desc.pad[1]),
        back_(back),
        dtype_(desc.dtype),
        rows_(back ? BackwardRows(desc) : ForwardRows(desc)) {
    const std::vector<int64_t> out = desc.Out();
    source_width_ = back ? out[1] : desc.in[1];
    source_image_ = source_width_ * (back ? out[0] : desc.in[0]) * channels_;
    target_width_ = back ? desc.in[1] : out[1];
  }

  size_t ScratchBytes() const { return (kTaps + 2) * channels_ * sizeof(float); }

  // Packs the weights to (9, C) in scratch, then computes all targets. `bias` is null for 0.
  void Run(const void* source, const float* weight, const float* bias, void* target,
           std::span<std::byte> scratch) const {
    float* packed = reinterpret_cast<float*>(scratch.data());
    for (int64_t c = 0; c < channels_; ++c) {
      for (int t = 0; t < kTaps; ++t) packed[t * channels_ + c] = weight[c * kTaps + t];
    }
    float *start = packed + kTaps * channels_, *zeros = start + channels_;
    std::fill_n(start, 2 * channels_, 0.0f);
    if (bias != nullptr) std::copy_n(bias, channels_, start);
    const int64_t pixel = channels_ * static_cast<int64_t>(SizeOf(dtype_));
    const bool stream = (pixel | reinterpret_cast<intptr_t>(target)) % kLineBytes == 0 &&
                        Streams(target, TargetLines() * target_width_ * pixel, pixel);
    const Operands operands = {source, packed, start, zeros, target, stream};
    DispatchCpuDtype(dtype_, [&](auto type) {
      WithLanes(channels_, [&](auto lanes) {
        using T = typename decltype(type)::Type;
        using V = typename decltype(lanes)::Type;
        if (back_) {
          stride_ == 1 ? RunLines<T, V, 1, true>(operands) : RunLines<T, V, 2, true>(operands);
        } else {
          stride_ == 1 ? RunLines<T, V, 1, false>(operands) : RunLines<T, V, 2, false>(operands);
        }
      });
    });
  }

 private:
  static constexpr int64_t kLineBytes = 64;

  // Returns the number of lines of all target images.
  int64_t TargetLines() const { return batch_ * static_cast<int64_t>(rows_.size()); }

  // Computes all target lines, window by window, for stride S.
  template <class T, class V, int S, bool kBack>
  void RunLines(const Operands& operands) const {
    const auto line = [ =, this ](int64_t at) __attribute__((always_inline)) {
      using Window = DepthwiseWindow<S, kBack>;
      const auto rows = static_cast<int64_t>(rows_.size());
      const T* image = static_cast<const T*>(operands.source) + at / rows * source_image_;
      T* target = static_cast<T*>(operands.target) + at * target_width_ * channels_;
      for (int64_t t = Window::FirstTarget(pad_); t < target_width_; t += Window::kTargets) {
        const T* sources[3][Window::kSources];
        const int64_t first = Window::FirstSource(t, pad_);
        for (int r = 0; r < 3; ++r) {
          const int64_t row = rows_[at % rows].at[r];
          for (int i = 0; i < Window::kSources; ++i) {
            const int64_t column = first + i;
            sources[r][i] = row < 0 || column < 0 || column >= source_width_
                                ? static_cast<const T*>(operands.zeros)
                                : image + row + column * channels_;
          }
        }
        RunTile<T, V, Window>(sources, operands, target + t * channels_, std::max<int64_t>(-t, 0),
                              target_width_ - t);
      }
    };
    ParallelLanes<V>(TargetLines(), MinChunk(target_width_ * channels_), operands.stream, line);
  }

  // Computes the targets of a window for all channels and writes those in [begin, end), which
  // excludes targets outside the line.
  template <class T, class V, class Window>
  TRAINER_INLINE void RunTile(const T* const (&sources)[3][Window::kSources],
                              const Operands& operands, T* target, int64_t begin,
                              int64_t end) const {
    constexpr int64_t kLine = kLineBytes / sizeof(T);
    const int64_t channels = channels_;
    // Lines are collected here before they are streamed, because streaming parts of a line costs
    // more than it saves.
    alignas(kLineBytes) T lines[Window::kTargets][kLine];
    ForBlocks<V::kLanes>(
        channels, [&](int64_t c) __attribute__((always_inline)) {
          typename V::F sum[Window::kTargets];
          V::LoadTo(sum[0], operands.start + c);
#pragma GCC unroll 16
          for (int t = 1; t < Window::kTargets; ++t) sum[t] = sum[0];
#pragma GCC unroll 1
          for (int r = 0; r < 3; ++r) {
            typename V::F weight[3];
#pragma GCC unroll 3
            for (int k = 0; k < 3; ++k) {
              V::LoadTo(weight[k], operands.weight + (3 * r + k) * channels + c);
            }
#pragma GCC unroll 16
            for (int i = 0; i < Window::kSources; ++i) {
              typename V::F value;
              V::LoadTo(value, sources[r][i] + c);
              if (Window::IsNew(r)) PrefetchAhead(sources[r][i] + c);
#pragma GCC unroll 3
              for (int k = 0; k < 3; ++k) {
                const int t = Window::TargetOf(i, k);
                if (t >= 0) sum[t] += value * weight[k];
              }
            }
          }
#pragma GCC unroll 16
          for (int t = 0; t < Window::kTargets; ++t) {
            if (t < begin || t >= end) continue;
            if (!operands.stream) {
              V::StoreTo(target + t * channels + c, sum[t]);
              continue;
            }
            if constexpr (V::template kStreams<T>) {
              V::StreamTo(target + t * channels + c, sum[t]);
              continue;
            }
            V::StoreTo(&lines[t][c % kLine], sum[t]);
            if ((c + V::kLanes) % kLine != 0) continue;
            StreamLine(target + t * channels + c + V::kLanes - kLine, lines[t]);
          }
        });
  }

  int64_t batch_, channels_, stride_, pad_;
  bool back_;
  DType dtype_;
  std::vector<DepthwiseRows> rows_;  // by target row
  int64_t source_width_, source_image_, target_width_;
};

// DepthwisePass over y, then a pass for the ReLU if there is one.
class DepthwiseForward final : public ConvForward {
 public:
  explicit DepthwiseForward(const ConvDesc& desc)
      : bias_(desc.bias),
        relu_(desc.relu),
        count_(desc.OutShape().Count()),
        dtype_(desc.dtype),
        pass_(desc, false) {}

  std::string Name() const override { return "own depthwise"; }
  size_t ScratchBytes() const override { return pass_.ScratchBytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    pass_.Run(x, weight, bias_ ? bias : nullptr, y, scratch);
    if (relu_) Rectify(y, count_, dtype_);
  }

 private:
  bool bias_, relu_;
  int64_t count_;
  DType dtype_;
  DepthwisePass pass_;
};

// DepthwisePass over dx.
class DepthwiseBackwardData final : public ConvBackwardData {
 public:
  explicit DepthwiseBackwardData(const ConvDesc& desc) : pass_(desc, true) {}

  std::string Name() const override { return "own depthwise"; }
  size_t ScratchBytes() const override { return pass_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    pass_.Run(dy, weight, nullptr, dx, scratch);
  }

 private:
  DepthwisePass pass_;
};

// Accepts a convolution unless DepthwiseRefuses gives a reason.
KernelOrReason<ConvForward> TakeDepthwiseForward(const Device&, const ConvDesc& desc) {
  if (auto why = DepthwiseRefuses(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<DepthwiseForward>(desc);
}
// Accepts a convolution unless DepthwiseRefuses gives a reason.
KernelOrReason<ConvBackwardData> TakeDepthwiseData(const Device&, const ConvDesc& desc) {
  if (auto why = DepthwiseRefuses(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<DepthwiseBackwardData>(desc);
}

const RegisterConvKernel<ConvForward> kConvDepthwiseForward({DeviceKind::kCpu, priority::kOwn,
                                                             "own depthwise",
                                                             TakeDepthwiseForward});
const RegisterConvKernel<ConvBackwardData> kConvDepthwiseData({DeviceKind::kCpu, priority::kOwn,
                                                               "own depthwise", TakeDepthwiseData});

}  // namespace

std::string DepthwiseRefuses(const ConvDesc& desc) {
  if (desc.in.size() != 2) return "it supports images only";
  if (desc.group != desc.in_channels || desc.group != desc.out_channels) {
    return "the groups do not have one input and one output channel each";
  }
  if (desc.group < 4) return "fewer than 4 channels";
  if (desc.kernel[0] != 3 || desc.kernel[1] != 3) return "the kernel is not 3 x 3";
  if (desc.stride[1] > 2) return "the stride along the width is more than 2";
  return desc.dilation[1] != 1 ? "the kernel is dilated along the width" : "";
}

std::vector<DepthwiseRows> ForwardRows(const ConvDesc& desc) {
  std::vector<DepthwiseRows> rows(static_cast<size_t>(desc.Out()[0]));
  for (size_t y = 0; y < rows.size(); ++y) {
    for (int64_t r = 0; r < 3; ++r) {
      const int64_t x =
          static_cast<int64_t>(y) * desc.stride[0] + r * desc.dilation[0] - desc.pad[0];
      const bool inside = x >= 0 && x < desc.in[0];
      rows[y].at[r] = inside ? x * desc.in[1] * desc.in_channels : -1;
    }
  }
  return rows;
}

std::vector<DepthwiseRows> BackwardRows(const ConvDesc& desc) {
  const std::vector<int64_t> out = desc.Out();
  std::vector<DepthwiseRows> rows(static_cast<size_t>(desc.in[0]));
  for (size_t x = 0; x < rows.size(); ++x) {
    for (int64_t r = 0; r < 3; ++r) {
      const int64_t y = static_cast<int64_t>(x) + desc.pad[0] - r * desc.dilation[0];
      const bool inside = y >= 0 && y % desc.stride[0] == 0 && y / desc.stride[0] < out[0];
      rows[x].at[r] = inside ? y / desc.stride[0] * out[1] * desc.in_channels : -1;
    }
  }
  return rows;
}

}  // namespace trainer::cpu

#include <algorithm>

#include "cpu/conv/segment.h"
#include "cpu/simd.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/text/text.h"

namespace trainer::cpu {
namespace {

// Each thread computes whole images or lines of outputs.
class SegmentForward final : public ConvForward {
 public:
  explicit SegmentForward(const ConvDesc& desc)
      : s_(desc),
        relu_(desc.relu),
        tail_(TailColumns(s_.m, s_.kh, s_.segment)),
        wide_(RoundUpToLanes(s_.m - tail_)),
        pixel_(s_.PixelOffsets()),
        tap_(s_.TapOffsets()),
        main_(scratch_.Add<float>(s_.kh * s_.segment * wide_)),
        tail_weights_(scratch_.Add<float>(s_.kh * tail_ * s_.segment_wide)),
        bias_(scratch_.Add<float>(s_.m_wide)),
        images_(scratch_.Add<float>(s_.HasPad() ? s_.threads * s_.padded : 0)) {}

  std::string Name() const override { return "own segments"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    PackMain(weight, main_.At(scratch));
    PackTail(weight, tail_weights_.At(scratch));
    std::fill_n(bias_.At(scratch), s_.m_wide, 0.0f);
    if (s_.bias) std::copy_n(bias, s_.m, bias_.At(scratch));
    // If there are few images, each thread computes an equal number of lines.
    const bool few = s_.Parts() < s_.threads * kPartsPerThread;
    const int parts = few ? s_.threads : s_.Parts();
    const auto first = [&](int64_t part) {
      return few ? s_.batch * s_.oh * part / parts : s_.batch * part / parts * s_.oh;
    };
    RunParts(parts, s_.threads, [&](int part, int thread) {
      RunLines(first(part), first(part + 1), static_cast<const float*>(x), static_cast<float*>(y),
               scratch, images_.At(scratch) + thread * s_.padded);
    });
  }

 private:
  // Repacks (M, C, KH, KW) to (KH, KW, C, M wide), for the columns before the tail.
  void PackMain(const float* weight, float* packed) const {
    const int64_t taps = s_.kh * s_.kw, columns = s_.m - tail_;
    ParallelRanges(taps * s_.c, 1 + 8192 / s_.m_wide, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const float* from = weight + at % s_.c * taps + at / s_.c;
        float* to = packed + at * wide_;
        for (int64_t m = 0; m < columns; ++m) to[m] = from[m * s_.c * taps];
        std::fill(to + columns, to + wide_, 0.0f);
      }
    });
  }

  // Repacks (M, C, KH, KW) to (KH, tail of M, (KW, C) wide).
  void PackTail(const float* weight, float* packed) const {
    const int64_t taps = s_.kh * s_.kw;
    for (int64_t at = 0; at < s_.kh * tail_; ++at, packed += s_.segment_wide) {
      const int64_t i = at / tail_, m = s_.m - tail_ + at % tail_;
      const float* from = weight + m * s_.c * taps + i * s_.kw;
      for (int64_t k = 0; k < s_.segment; ++k) packed[k] = from[k % s_.c * taps + k / s_.c];
      std::fill(packed + s_.segment, packed + s_.segment_wide, 0.0f);
    }
  }

  // Computes lines [begin, end) of all images' output lines. `padded` holds the padded copy of one
  // image.
  void RunLines(int64_t begin, int64_t end, const float* x, float* y, std::span<std::byte> scratch,
                float* padded) const {
    if (s_.HasPad()) std::fill_n(padded, s_.padded, 0.0f);
    while (begin < end) {
      const int64_t n = begin / s_.oh, first = begin % s_.oh;
      const int64_t lines = std::min(end - begin, s_.oh - first);
      const float* image = x + n * s_.x_image;
      if (s_.HasPad()) s_.CopyInside(image, padded);
      RunPixels(s_.HasPad() ? padded : image, pixel_.data() + first * s_.ow, lines * s_.ow, scratch,
                y + begin * s_.ow * s_.m);
      begin += lines;
    }
  }

  // Computes the outputs of neighbouring pixels whose windows begin at image + pixel[i].
  void RunPixels(const float* image, const int64_t* pixel, int64_t pixels,
                 std::span<std::byte> scratch, float* y) const {
    const int64_t columns = s_.m - tail_;
    const float* const bias = bias_.At(scratch);
    MultiplyPixels({.x = image,
                    .pixel = pixel,
                    .tap = tap_.data(),
                    .taps = s_.kh * s_.segment,
                    .w = main_.At(scratch),
                    .w_step = wide_,
                    .bias = bias,
                    .y = y,
                    .y_pixel = s_.m,
                    .columns = columns},
                   pixels);
    DotPixels({.x = image,
               .pixel = pixel,
               .rows = s_.kh,
               .x_row = s_.dh * s_.row,
               .length = s_.segment,
               .w = tail_weights_.At(scratch),
               .bias = bias + columns,
               .y = y + columns,
               .y_pixel = s_.m,
               .columns = tail_},
              pixels);
    if (!relu_) return;
    parallel_for_internal::Loop(
        0, pixels * s_.m, [=](int64_t i) __attribute__((always_inline)) {
          y[i] = y[i] <= 0 ? 0.0f : y[i];
        });
  }

  SegmentShape s_;
  bool relu_;
  int64_t tail_;  // last outputs, computed as dot products
  int64_t wide_;
  std::vector<int64_t> pixel_, tap_;
  ScratchLayout scratch_;
  ScratchRegion<float> main_, tail_weights_, bias_, images_;
};

// Accepts a convolution unless SegmentsRefuseForwardOrData gives a reason or the outputs are a
// multiple of 64 (8 with AVX2). The choice was measured with conv_kernels
// (scripts/bench/README.md).
KernelOrReason<ConvForward> TakeSegmentForward(const Device&, const ConvDesc& desc) {
  if (auto why = SegmentsRefuseForwardOrData(desc); !why.empty()) return Unsupported{why};
  const int64_t block = LanesFor(kLanes) == kLanes ? 4 * kLanes : 8;
  if (desc.out_channels % block == 0) {
    return Unsupported{Join("the outputs fill oneDNN's blocks of ", block, " channels")};
  }
  return std::make_unique<SegmentForward>(desc);
}

const RegisterConvKernel<ConvForward> kConvSegmentForward({DeviceKind::kCpu, priority::kOwn + 10,
                                                           "own segments", TakeSegmentForward});

}  // namespace
}  // namespace trainer::cpu

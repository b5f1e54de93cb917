#include <algorithm>

#include "cpu/conv/segment.h"
#include "cpu/simd.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer::cpu {
namespace {

// Number of floats of contributions that stay in the second-level cache until they are added.
constexpr int64_t kProductFloats = 64 << 10;

// dy times the weight gives each pixel's contribution to the segments that it was computed from.
// The contributions are then added at the segments' positions. Each thread processes whole images.
class SegmentBackwardData final : public ConvBackwardData {
 public:
  explicit SegmentBackwardData(const ConvDesc& desc)
      : s_(desc),
        tail_(TailColumns(s_.segment, 1, s_.m)),
        wide_(RoundUpToLanes(s_.segment - tail_)),
        lines_(std::clamp<int64_t>(kProductFloats / (s_.ow * s_.segment_wide), 1, s_.oh)),
        main_(scratch_.Add<float>(s_.kh * s_.m * wide_)),
        tail_weights_(scratch_.Add<float>(s_.kh * tail_ * s_.m_wide)),
        shares_(scratch_.Add<float>(s_.threads * Shares())),
        images_(scratch_.Add<float>(s_.HasPad() ? s_.threads * s_.padded : 0)) {
    for (int64_t p = 0; p < lines_ * s_.ow; ++p) pixel_.push_back(p * s_.m);
    for (int64_t m = 0; m < s_.m; ++m) tap_.push_back(m);
  }

  std::string Name() const override { return "own segments"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    Pack(weight, main_.At(scratch), tail_weights_.At(scratch));
    const int parts = s_.Parts();
    RunParts(parts, s_.threads, [&](int part, int thread) {
      float* shares = shares_.At(scratch) + thread * Shares();
      float* padded = images_.At(scratch) + thread * s_.padded;
      const int64_t end = s_.batch * (part + 1) / parts;
      for (int64_t n = s_.batch * part / parts; n < end; ++n) {
        RunImage(static_cast<const float*>(dy) + n * s_.y_image, scratch, shares, padded,
                 static_cast<float*>(dx) + n * s_.x_image);
      }
    });
  }

 private:
  // Returns the number of contributions that are computed at once.
  int64_t Shares() const { return lines_ * s_.ow * s_.segment_wide; }

  // Repacks (M, C, KH, KW) to (KH, M, (KW, C) wide), except for the tail, which becomes (KH, tail
  // of (KW, C), M wide).
  void Pack(const float* weight, float* main, float* tail) const {
    const int64_t taps = s_.kh * s_.kw, columns = s_.segment - tail_;
    ParallelRanges(s_.kh * s_.m, 1 + 8192 / s_.segment, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t i = at / s_.m, m = at % s_.m;
        const float* from = weight + m * s_.c * taps + i * s_.kw;
        float* to = main + at * wide_;
        for (int64_t k = 0; k < columns; ++k) to[k] = from[k % s_.c * taps + k / s_.c];
        std::fill(to + columns, to + wide_, 0.0f);
        for (int64_t k = columns; k < s_.segment; ++k) {
          tail[(i * tail_ + k - columns) * s_.m_wide + m] = from[k % s_.c * taps + k / s_.c];
        }
      }
    });
    for (int64_t at = 0; at < s_.kh * tail_; ++at, tail += s_.m_wide) {
      std::fill(tail + s_.m, tail + s_.m_wide, 0.0f);
    }
  }

  // Computes dx of one image: for some lines of dy and one row of the kernel at a time, computes
  // the contributions and adds them.
  void RunImage(const float* dy, std::span<std::byte> scratch, float* shares, float* padded,
                float* dx) const {
    float* sum = s_.HasPad() ? padded : dx;
    std::fill_n(sum, s_.padded, 0.0f);
    for (int64_t line = 0; line < s_.oh; line += lines_) {
      const int64_t lines = std::min(lines_, s_.oh - line);
      for (int64_t i = 0; i < s_.kh; ++i) {
        MakeShares(dy + line * s_.ow * s_.m, lines * s_.ow, i, scratch, shares);
        for (int64_t l = 0; l < lines; ++l) {
          AddOverlapping(
              {shares + l * s_.ow * s_.segment_wide, s_.segment_wide, s_.ow, s_.kw, s_.sw, s_.c},
              sum + ((line + l) * s_.sh + i * s_.dh) * s_.row);
        }
      }
    }
    if (!s_.HasPad()) return;
    for (int64_t r = 0; r < s_.h; ++r) {
      std::copy_n(padded + (r + s_.ph) * s_.row + s_.pw * s_.c, s_.w * s_.c, dx + r * s_.w * s_.c);
    }
  }

  // Sets shares (pixels, segment wide) to the contributions of `pixels` pixels of dy through row i
  // of the kernel.
  void MakeShares(const float* dy, int64_t pixels, int64_t i, std::span<std::byte> scratch,
                  float* shares) const {
    // Whole vectors, because a store of a part is slow.
    const int64_t lanes = LanesFor(kLanes), columns = s_.segment - tail_;
    MultiplyPixels({.x = dy,
                    .pixel = pixel_.data(),
                    .tap = tap_.data(),
                    .taps = s_.m,
                    .w = main_.At(scratch) + i * s_.m * wide_,
                    .w_step = wide_,
                    .bias = nullptr,
                    .y = shares,
                    .y_pixel = s_.segment_wide,
                    .columns = (columns + lanes - 1) / lanes * lanes},
                   pixels);
    DotPixels({.x = dy,
               .pixel = pixel_.data(),
               .rows = 1,
               .x_row = 0,
               .length = s_.m,
               .w = tail_weights_.At(scratch) + i * tail_ * s_.m_wide,
               .bias = nullptr,
               .y = shares + columns,
               .y_pixel = s_.segment_wide,
               .columns = tail_},
              pixels);
  }

  SegmentShape s_;
  int64_t tail_;   // end of the segment, computed as dot products
  int64_t wide_;   // rest of the segment, rounded up to whole vectors
  int64_t lines_;  // output lines processed at once
  std::vector<int64_t> pixel_, tap_;
  ScratchLayout scratch_;
  ScratchRegion<float> main_, tail_weights_, shares_, images_;
};

// Accepts a convolution unless SegmentsRefuseForwardOrData gives a reason.
KernelOrReason<ConvBackwardData> TakeSegmentData(const Device&, const ConvDesc& desc) {
  if (auto why = SegmentsRefuseForwardOrData(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<SegmentBackwardData>(desc);
}

const RegisterConvKernel<ConvBackwardData> kConvSegmentData({DeviceKind::kCpu, priority::kOwn + 10,
                                                             "own segments", TakeSegmentData});

}  // namespace
}  // namespace trainer::cpu

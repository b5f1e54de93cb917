#include <algorithm>

#include "cpu/conv/segment.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer::cpu {
namespace {

// A block of work: whole images or lines of one image, as many as fit the nearest caches while
// every tile of the gradient passes over them.
struct CacheBlock {
  explicit CacheBlock(const SegmentShape& s) {
    constexpr int64_t kBytes = 96 << 10;
    const int64_t line = s.sh * s.row + s.ow * s.m;
    lines = std::clamp<int64_t>(kBytes / 4 / line, 1, s.oh);
    images = lines < s.oh ? 1 : std::clamp<int64_t>(kBytes / 4 / (s.padded + s.y_image), 1, 4);
  }
  int64_t images, lines;
};

// Computes the gradients of the weight and the bias. Each part sums its images into its own
// gradient; the parts are then added in a fixed order.
class SegmentBackwardWeight final : public ConvBackwardWeight {
 public:
  explicit SegmentBackwardWeight(const ConvDesc& desc)
      : s_(desc),
        tail_(TailColumns(s_.m, s_.kh, s_.segment)),
        wide_(RoundUpToLanes(s_.m - tail_)),
        block_(s_),
        tail_at_(s_.kh * s_.segment * wide_),
        bias_at_(tail_at_ + s_.kh * tail_ * s_.segment_wide),
        grad_(bias_at_ + s_.m_wide),
        parts_(Parts()),
        grads_(scratch_.Add<float>(parts_ * grad_)),
        images_(scratch_.Add<float>(s_.HasPad() ? s_.threads * block_.images * s_.padded : 0)) {}

  std::string Name() const override { return "own segments"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    float* const grads = grads_.At(scratch);
    const int64_t lines = s_.batch * s_.oh;
    RunParts(static_cast<int>(parts_), s_.threads, [&](int part, int thread) {
      RunLines(lines * part / parts_, lines * (part + 1) / parts_, static_cast<const float*>(x),
               static_cast<const float*>(dy), grads + part * grad_,
               images_.At(scratch) + thread * block_.images * s_.padded);
    });
    AddParts(grads, dweight);
    if (!s_.bias || dbias == nullptr) return;
    for (int64_t m = 0; m < s_.m; ++m) dbias[m] += SumOfParts(grads + bias_at_ + m, parts_, grad_);
  }

 private:
  // Returns the number of parts of the work.
  int64_t Parts() const {
    const int64_t blocks = s_.batch * s_.oh / (block_.images * block_.lines * s_.threads);
    return s_.threads * GradientPartsPerThread(grad_, blocks);
  }
  // Processes lines [begin, end) of all images' output lines: whole images in groups, else some
  // lines of one image.
  void RunLines(int64_t begin, int64_t end, const float* x, const float* dy, float* grad,
                float* padded) const {
    std::fill_n(grad, grad_, 0.0f);
    if (s_.HasPad()) std::fill_n(padded, block_.images * s_.padded, 0.0f);
    int64_t held = -1;
    while (begin < end) {
      const int64_t n = begin / s_.oh, first = begin % s_.oh;
      const bool whole = first == 0 && block_.lines == s_.oh && end - begin >= s_.oh;
      const int64_t images = whole ? std::min((end - begin) / s_.oh, block_.images) : 1;
      const int64_t lines = std::min({end - begin, s_.oh - first, block_.lines});
      const float* from = x + n * s_.x_image;
      if (s_.HasPad()) {
        for (int64_t i = 0; i < images && n != held; ++i) {
          s_.CopyInside(from + i * s_.x_image, padded + i * s_.padded);
        }
        held = n;
        from = padded;
      }
      AddImages({from + first * s_.sh * s_.row, s_.HasPad() ? s_.padded : s_.x_image,
                 s_.sh * s_.row, s_.sw * s_.c},
                {dy + begin * s_.ow * s_.m, s_.y_image, s_.ow * s_.m, s_.m}, images, lines, grad);
      begin += images * lines;
    }
  }

  // Adds the contribution of `lines` lines of each of `images` images to the gradient of a part.
  void AddImages(const Operand& x, const Operand& dy, int64_t images, int64_t lines,
                 float* grad) const {
    const int64_t columns = s_.m - tail_;
    const auto add = [&](const Operand& left, int64_t length, const Operand& right, int64_t width,
                         float* g, int64_t step) {
      AddOuterProducts({left, right, g, step, images, lines, s_.ow, length, width});
    };
    for (int64_t i = 0; i < s_.kh; ++i) {
      const Operand rows = x.Plus(i * s_.dh * s_.row);
      add(rows, s_.segment, dy, columns, grad + i * s_.segment * wide_, wide_);
      // The tail outputs are transposed, so that the long side fills the vectors.
      add(dy.Plus(columns), tail_, rows, s_.segment, grad + tail_at_ + i * tail_ * s_.segment_wide,
          s_.segment_wide);
    }
    const float one = 1;
    if (s_.bias) add({&one, 0, 0, 0}, 1, dy, s_.m, grad + bias_at_, s_.m_wide);
  }

  // Adds the sums of all parts, in the order of the parts, to `dweight` (M, C, KH, KW).
  void AddParts(const float* grads, float* dweight) const {
    const int64_t rows = s_.kh * s_.segment, taps = s_.kh * s_.kw, columns = s_.m - tail_;
    ParallelRanges(s_.m, 1 + 4096 / rows, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        const float* from = grads + m;
        int64_t step = wide_, gap = 0;
        if (m >= columns) {
          from = grads + tail_at_ + (m - columns) * s_.segment_wide;
          step = 1;
          gap = tail_ * s_.segment_wide - s_.segment;
        }
        float* to = dweight + m * rows;
        for (int64_t i = 0; i < s_.kh; ++i, from += gap) {
          for (int64_t j = 0; j < s_.kw; ++j) {
            for (int64_t c = 0; c < s_.c; ++c, from += step) {
              to[c * taps + i * s_.kw + j] += SumOfParts(from, parts_, grad_);
            }
          }
        }
      }
    });
  }

  SegmentShape s_;
  int64_t tail_;  // last outputs; their sums are transposed: (KH, tail, (KW, C) wide)
  int64_t wide_;  // the other sums are (KH, KW, C, M wide)
  CacheBlock block_;
  int64_t tail_at_, bias_at_, grad_;  // offsets inside one part's gradient, and its length
  int64_t parts_;                     // of the work, each with its own gradient
  ScratchLayout scratch_;
  ScratchRegion<float> grads_, images_;
};

// Accepts a convolution unless SegmentsRefuse gives a reason.
KernelOrReason<ConvBackwardWeight> TakeSegmentWeight(const Device&, const ConvDesc& desc) {
  if (auto why = SegmentsRefuse(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<SegmentBackwardWeight>(desc);
}

const RegisterConvKernel<ConvBackwardWeight> kConvSegmentWeight(
    {DeviceKind::kCpu, priority::kOwn + 10, "own segments", TakeSegmentWeight});

}  // namespace
}  // namespace trainer::cpu

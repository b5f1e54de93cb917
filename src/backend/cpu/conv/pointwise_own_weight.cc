#include <algorithm>

#include "cpu/conv/pointwise_own.h"
#include "cpu/conv/winograd.h"
#include "cpu/simd.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cpu {
namespace {

// Copies `channels` channels of a pixel to groups of 16 channels. A group begins `group` floats
// after the previous one, and zeros fill the last group.
template <class V, class T>
struct CopyToGroups {
  static TRAINER_INLINE void Run(const T* from, int64_t channels, int64_t group, float* to) {
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes, to += group) {
      for (int64_t lane = 0; lane < kLanes; lane += V::kLanes) {
        typename V::F value;
        V::LoadTo(value, from + c + lane);
        V::StoreTo(to + lane, value);
      }
    }
    for (int64_t lane = 0; c < channels && lane < kLanes; ++lane) {
      to[lane] = c + lane < channels ? Load(from[c + lane]) : 0.0f;
    }
  }
};

// Computes dweight (m, c) += dy^T x. Each thread sums over some pixels into its own array; the
// arrays are then added in a fixed order. If the arrays would be large, groups of threads share
// one, and each thread computes a part of the columns.
class OwnPointwiseWeight final : public ConvBackwardWeight {
 public:
  explicit OwnPointwiseWeight(const ConvDesc& desc)
      : pixels_(desc),
        c_(desc.in_channels),
        m_(desc.out_channels),
        bias_(desc.bias),
        dtype_(desc.dtype),
        threads_(TeamSize()),
        panel_(PanelOutputs()),
        panels_((RoundUpToLanes(c_) + panel_ - 1) / panel_),
        splits_(Splits(RoundUpToLanes(c_) * RoundUpToLanes(m_))),
        rows_(std::clamp<int64_t>(kFloats / (RoundUpToLanes(c_) + RoundUpToLanes(m_)), 48, 256)),
        sums_(scratch_.Add<float>(threads_ / splits_ * RoundUpToLanes(c_) * RoundUpToLanes(m_))),
        x_(scratch_.Add<float>(threads_ * rows_ * RoundUpToLanes(c_))),
        dy_(scratch_.Add<float>(threads_ * rows_ * RoundUpToLanes(m_))),
        bias_sums_(scratch_.Add<float>(threads_ * RoundUpToLanes(m_))) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    DispatchCpuDtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      RunParts(threads_, [&](int part) {
        SumPixels(static_cast<const T*>(x), static_cast<const T*>(dy), part,
                  bias_ && dbias != nullptr, scratch);
      });
    });
    RunParts(threads_, [&](int part) { AddSums(sums_.At(scratch), part, dweight); });
    if (!bias_ || dbias == nullptr) return;
    for (int64_t m = 0; m < m_; ++m) {
      float sum = 0;
      for (int part = 0; part < threads_; ++part) {
        sum += bias_sums_.At(scratch)[part * RoundUpToLanes(m_) + m];
      }
      dbias[m] += sum;
    }
  }

 private:
  static constexpr int64_t kFloats = 80 << 10;  // a block of pixels in the second-level cache

  // Returns how many threads share an array of sums, a power of two.
  int Splits(int64_t sums) const {
    constexpr int64_t kMaxFloats = int64_t{12} << 20;  // limit for the sums of all threads
    int splits = 1;
    while (threads_ % (splits * 2) == 0 && sums * (threads_ / splits) > kMaxFloats &&
           splits * 2 <= panels_) {
      splits *= 2;
    }
    return splits;
  }

  // Sums over the pixels of a part for the part's columns.
  template <class T>
  void SumPixels(const T* x, const T* dy, int part, bool with_bias,
                 std::span<std::byte> scratch) const {
    const int64_t parts = threads_ / splits_, at = part / splits_, split = part % splits_;
    const int64_t first = panels_ * split / splits_, last = panels_ * (split + 1) / splits_;
    const int64_t column = first * panel_, columns = std::min(last * panel_, c_) - column;
    float* const sums = sums_.At(scratch) + at * RoundUpToLanes(c_) * RoundUpToLanes(m_);
    float* const bias_sums = bias_sums_.At(scratch) + part * RoundUpToLanes(m_);
    float* const left = dy_.At(scratch) + part * rows_ * RoundUpToLanes(m_);
    float* const right = x_.At(scratch) + part * rows_ * RoundUpToLanes(c_);
    std::fill_n(bias_sums, RoundUpToLanes(m_), 0.0f);
    const int64_t begin = pixels_.count * at / parts,
                  count = pixels_.count * (at + 1) / parts - begin;
    // There is at least one block, so that the sums are written.
    const int64_t blocks = std::max<int64_t>(1, (count + rows_ - 1) / rows_);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t p0 = begin + count * i / blocks;
      const int64_t rows = begin + count * (i + 1) / blocks - p0;
      for (int64_t r = 0; r < rows; ++r) {
        ToGroups(dy + (p0 + r) * m_, m_, rows * kLanes, left + r * kLanes);
        ToGroups(x + pixels_.At(p0 + r) * c_ + column, columns, rows * kLanes, right + r * kLanes);
      }
      AddPoint(left, right, rows, RoundUpToLanes(m_), RoundUpToLanes(c_), first, last, i == 0,
               sums);
      for (int64_t m = 0; with_bias && split == 0 && m < m_; m += kLanes) {
        AddPixels(left + m * rows, rows, kLanes, bias_sums + m);
      }
    }
  }

  // Adds the arrays of sums to one of threads_ parts of dweight.
  void AddSums(const float* sums, int part, float* dweight) const {
    const int64_t end = m_ * (part + 1) / threads_, size = RoundUpToLanes(c_) * RoundUpToLanes(m_);
    for (int64_t m = m_ * part / threads_; m < end; ++m) {
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const int64_t first = panel * panel_, width = std::min(panel_, RoundUpToLanes(c_) - first);
        const float* from = sums + first * RoundUpToLanes(m_) + m * width;
        float* to = dweight + m * c_ + first;
        const int64_t columns = std::min(width, c_ - first);
        for (int64_t j = 0; j < columns; ++j) {
          float sum = 0;
          for (int64_t i = 0; i < threads_ / splits_; ++i) sum += from[i * size + j];
          to[j] += sum;
        }
      }
    }
  }

  template <class T>
  static void ToGroups(const T* from, int64_t channels, int64_t group, float* to) {
    WithWideLanes([=](auto lanes) {
      using V = typename decltype(lanes)::Type;
      CompiledFor<V, CopyToGroups<V, T>, const T*, int64_t, int64_t, float*>()(from, channels,
                                                                               group, to);
    });
  }

  ReadPixels pixels_;
  int64_t c_, m_;
  bool bias_;
  DType dtype_;
  int threads_;
  int64_t panel_, panels_;
  int splits_;    // parts of the columns, for threads with the same pixels
  int64_t rows_;  // pixels of a block
  ScratchLayout scratch_;
  ScratchRegion<float> sums_, x_, dy_, bias_sums_;
};

// Accepts a convolution unless OwnPointwiseRefuses gives a reason or f32 channels would leave much
// of the vectors empty.
KernelOrReason<ConvBackwardWeight> TakeOwnPointwiseWeight(const Device&, const ConvDesc& desc) {
  if (auto why = OwnPointwiseRefuses(desc); !why.empty()) return Unsupported{why};
  const int64_t c = desc.in_channels, m = desc.out_channels;
  if (desc.dtype == DType::kF32 && 5 * RoundUpToLanes(c) * RoundUpToLanes(m) > 6 * c * m) {
    return Unsupported{"the channels are far from multiples of 16"};
  }
  return std::make_unique<OwnPointwiseWeight>(desc);
}

const RegisterConvKernel<ConvBackwardWeight> kConvOwnPointwiseWeight(
    {DeviceKind::kCpu, priority::kOwn + 5, "own product", TakeOwnPointwiseWeight});

}  // namespace
}  // namespace trainer::cpu

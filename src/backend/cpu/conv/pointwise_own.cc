#include "cpu/conv/pointwise_own.h"

#include <algorithm>
#include <vector>

#include "cpu/conv/tiles.h"
#include "cpu/simd.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cpu {
namespace {

// Copies `count` neighbouring numbers to floats.
template <class V>
struct CopyToFloats {
  static TRAINER_INLINE void Run(const BFloat16* from, int64_t count, float* to) {
    int64_t i = 0;
    for (typename V::F value; i + V::kLanes <= count; i += V::kLanes) {
      V::LoadTo(value, from + i);
      V::StoreTo(to + i, value);
    }
    for (; i < count; ++i) to[i] = Load(from[i]);
  }
};
// Stores floats as bf16, max(0, y) if `rectify`; NaN is kept.
template <class V>
struct StoreFloats {
  static TRAINER_INLINE void Run(const float* from, int64_t count, bool rectify, BFloat16* to) {
    int64_t i = 0;
    for (typename V::F value; i + V::kLanes <= count; i += V::kLanes) {
      V::LoadTo(value, from + i);
      if (rectify) value = value <= typename V::F{} ? typename V::F{} : value;
      V::StoreTo(to + i, value);
    }
    for (; i < count; ++i) Store(to[i], rectify && from[i] <= 0 ? 0.0f : from[i]);
  }
};

// Computes y (pixels, m) = x (pixels, c) * w in bf16, where w(k, j) is the float at weight[k *
// k_step + j * j_step]. Each thread computes some pixels. A sum adds its products in the order of
// k, so that y does not depend on the number of threads.
class PixelProduct {
 public:
  PixelProduct(const ReadPixels& pixels, int64_t c, int64_t m, int64_t k_step, int64_t j_step)
      : pixels_(pixels),
        c_(c),
        m_(m),
        k_step_(k_step),
        j_step_(j_step),
        lanes_(LanesFor(kLanes)),
        vectors_((m + lanes_ - 1) / lanes_),
        panels_(std::max<int64_t>(1, vectors_ / 2)),
        blocks_((c + kDepth - 1) / kDepth),
        depth_((c + blocks_ - 1) / blocks_),
        rows_(std::clamp<int64_t>(kFloats / m / kTileRows * kTileRows, 24, kRows)),
        threads_(TeamSize()),
        weight_(scratch_.Add<float>(c * vectors_ * lanes_)),
        bias_(scratch_.Add<float>(vectors_ * lanes_)),
        x_(scratch_.Add<float>(threads_ * rows_ * depth_)),
        y_(scratch_.Add<float>(threads_ * rows_ * m)) {
    for (int64_t r = 0; r < rows_; ++r) pixel_.push_back(r * depth_);
    for (int64_t k = 0; k < depth_; ++k) tap_.push_back(k);
  }

  size_t ScratchBytes() const { return scratch_.Bytes(); }
  // Writes max(0, y) if `rectify`. `bias` is null for 0.
  void Run(const BFloat16* x, const float* weight, const float* bias, bool rectify, BFloat16* y,
           std::span<std::byte> scratch) const {
    ParallelRanges(blocks_ * panels_, 1 + (int64_t{1} << 15) / (kDepth * 2 * lanes_),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) Pack(weight, i, weight_.At(scratch));
                   });
    float* const start = bias != nullptr ? bias_.At(scratch) : nullptr;
    if (bias != nullptr) {
      std::copy_n(bias, m_, start);
      std::fill(start + m_, start + vectors_ * lanes_, 0.0f);
    }
    const int64_t tiles = (pixels_.count + kTileRows - 1) / kTileRows;
    RunParts(threads_, [&](int part) {
      const int64_t end = std::min(tiles * (part + 1) / threads_ * kTileRows, pixels_.count);
      for (int64_t at = tiles * part / threads_ * kTileRows; at < end; at += rows_) {
        const int64_t rows = std::min(rows_, end - at);
        float* const sums = y_.At(scratch) + part * rows_ * m_;
        Multiply(x, at, rows, start, scratch, x_.At(scratch) + part * rows_ * depth_, sums);
        WithWideLanes([&](auto lanes) {
          using V = typename decltype(lanes)::Type;
          CompiledFor<V, StoreFloats<V>, const float*, int64_t, bool, BFloat16*>()(
              sums, rows * m_, rectify, y + at * m_);
        });
      }
    });
  }

 private:
  static constexpr int64_t kDepth = 256;  // inputs of a panel: 16 KiB of the first-level cache
  static constexpr int64_t kRows = 192;   // pixels of a block: 192 KiB of the second-level cache
  static constexpr int64_t kFloats = 48 << 10;  // sums of a block
  static constexpr int64_t kTileRows = 12;

  // Returns the first input of a block.
  int64_t FirstInput(int64_t block) const { return c_ * block / blocks_; }
  // Returns the first column of a panel. The last panel may have one or three vectors.
  int64_t Column(int64_t panel) const {
    return panel < panels_ ? panel * 2 * lanes_ : vectors_ * lanes_;
  }
  // Returns where a panel of a block is in the packed weight.
  int64_t PanelAt(int64_t block, int64_t panel) const {
    return FirstInput(block) * vectors_ * lanes_ +
           Column(panel) * (FirstInput(block + 1) - FirstInput(block));
  }

  // Packs one panel of one block to (inputs, columns of the panel).
  void Pack(const float* weight, int64_t task, float* packed) const {
    const int64_t block = task / panels_, panel = task % panels_;
    const int64_t first = Column(panel), width = Column(panel + 1) - first;
    const int64_t columns = std::min(width, m_ - first);
    float* to = packed + PanelAt(block, panel);
    for (int64_t k = FirstInput(block); k < FirstInput(block + 1); ++k, to += width) {
      const float* from = weight + k * k_step_ + first * j_step_;
      for (int64_t j = 0; j < columns; ++j) to[j] = from[j * j_step_];
      std::fill(to + columns, to + width, 0.0f);
    }
  }

  // Sets `sums` (rows, m) to the products of `rows` pixels from pixel `first` on. `floats` is
  // scratch.
  void Multiply(const BFloat16* x, int64_t first, int64_t rows, const float* bias,
                std::span<std::byte> scratch, float* floats, float* sums) const {
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t k0 = FirstInput(block), depth = FirstInput(block + 1) - k0;
      WithWideLanes([&](auto lanes) {
        using V = typename decltype(lanes)::Type;
        for (int64_t r = 0; r < rows; ++r) {
          CompiledFor<V, CopyToFloats<V>, const BFloat16*, int64_t, float*>()(
              x + pixels_.At(first + r) * c_ + k0, depth, floats + pixel_[r]);
        }
      });
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const int64_t column = Column(panel), width = Column(panel + 1) - column;
        MultiplyPixels({.x = floats,
                        .pixel = pixel_.data(),
                        .tap = tap_.data(),
                        .taps = depth,
                        .w = weight_.At(scratch) + PanelAt(block, panel),
                        .w_step = width,
                        .bias = bias != nullptr ? bias + column : nullptr,
                        .add = block > 0,
                        .y = sums + column,
                        .y_pixel = m_,
                        .columns = std::min(width, m_ - column)},
                       rows);
      }
    }
  }

  ReadPixels pixels_;
  int64_t c_, m_, k_step_, j_step_;
  int64_t lanes_, vectors_, panels_;
  int64_t blocks_, depth_;  // blocks of the inputs, and the inputs of the largest
  int64_t rows_;            // pixels of a block
  int threads_;
  std::vector<int64_t> pixel_, tap_;
  ScratchLayout scratch_;
  ScratchRegion<float> weight_, bias_, x_, y_;
};

// Computes y as a product of the pixels of x and the weight.
class OwnPointwiseForward final : public ConvForward {
 public:
  explicit OwnPointwiseForward(const ConvDesc& desc)
      : product_(ReadPixels(desc), desc.in_channels, desc.out_channels, 1, desc.in_channels),
        bias_(desc.bias),
        relu_(desc.relu) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    product_.Run(static_cast<const BFloat16*>(x), weight, bias_ ? bias : nullptr, relu_,
                 static_cast<BFloat16*>(y), scratch);
  }

 private:
  PixelProduct product_;
  bool bias_, relu_;
};

// Computes dx as a product of the pixels of dy and the transposed weight.
class OwnPointwiseData final : public ConvBackwardData {
 public:
  explicit OwnPointwiseData(const ConvDesc& desc)
      : product_(ReadPixels(desc), desc.out_channels, desc.in_channels, desc.in_channels, 1) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    product_.Run(static_cast<const BFloat16*>(dy), weight, nullptr, false,
                 static_cast<BFloat16*>(dx), scratch);
  }

 private:
  PixelProduct product_;
};

// Returns the reason why PixelProduct cannot compute `desc` or is slower, or "".
std::string PixelProductRefuses(const ConvDesc& desc) {
  if (auto why = OwnPointwiseRefuses(desc); !why.empty()) return why;
  return desc.dtype == DType::kF32 ? "oneDNN has compiled code for f32, which is faster" : "";
}

// Accepts a convolution unless PixelProductRefuses gives a reason.
KernelOrReason<ConvForward> TakeOwnPointwiseForward(const Device&, const ConvDesc& desc) {
  if (auto why = PixelProductRefuses(desc); !why.empty()) return Unsupported{why};
  return std::make_unique<OwnPointwiseForward>(desc);
}
// Accepts what OwnPointwiseDataOf accepts.
KernelOrReason<ConvBackwardData> TakeOwnPointwiseData(const Device&, const ConvDesc& desc) {
  return OwnPointwiseDataOf(desc);
}

const RegisterConvKernel<ConvForward> kConvOwnPointwiseForward({DeviceKind::kCpu,
                                                                priority::kOwn + 5, "own product",
                                                                TakeOwnPointwiseForward});
const RegisterConvKernel<ConvBackwardData> kConvOwnPointwiseData({DeviceKind::kCpu,
                                                                  priority::kOwn + 5, "own product",
                                                                  TakeOwnPointwiseData});

}  // namespace

bool IsPointwise(const ConvDesc& desc) {
  if (desc.in.size() != 2 || desc.group != 1) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (desc.kernel[i] != 1 || desc.pad[i] != 0) return false;
  }
  return true;
}

std::string OwnPointwiseRefuses(const ConvDesc& desc) {
  if (!HasWideLanes()) return "it needs AVX2";
  if (LanesFor(kLanes) == kLanes) return "oneDNN is faster with AVX-512";
  if (!IsPointwise(desc)) return "it is not a 1 x 1 kernel without groups and padding";
  return desc.in_channels < 8 || desc.out_channels < 8 ? "there are fewer than 8 channels" : "";
}

KernelOrReason<ConvBackwardData> OwnPointwiseDataOf(const ConvDesc& desc) {
  if (auto why = PixelProductRefuses(desc); !why.empty()) return Unsupported{why};
  if (ReadPixels(desc).HasStride()) return Unsupported{"the stride is not 1"};
  return std::make_unique<OwnPointwiseData>(desc);
}

}  // namespace trainer::cpu

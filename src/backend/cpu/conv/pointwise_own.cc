#include "cpu/conv/pointwise_own.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "cpu/conv/tiles.h"
#include "cpu/simd.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer::cpu {
namespace {

// Copies `count` neighbouring numbers to floats.
template <class V, class T>
struct CopyToFloats {
  static TRAINER_INLINE void Run(const T* from, int64_t count, float* to) {
    int64_t i = 0;
    for (typename V::F value; i + V::kLanes <= count; i += V::kLanes) {
      V::LoadTo(value, from + i);
      V::StoreTo(to + i, value);
    }
    for (; i < count; ++i) to[i] = Load(from[i]);
  }
};
// Stores floats as T, max(0, y) if `rectify`.
template <class V, class T>
struct StoreFloats {
  static TRAINER_INLINE void Run(const float* from, int64_t count, bool rectify, T* to) {
    int64_t i = 0;
    for (typename V::F value; i + V::kLanes <= count; i += V::kLanes) {
      V::LoadTo(value, from + i);
      if (rectify) value = value <= typename V::F{} ? typename V::F{} : value;
      V::StoreTo(to + i, value);
    }
    for (; i < count; ++i) Store(to[i], rectify && from[i] <= 0 ? 0.0f : from[i]);
  }
};
// Computes y (pixels, m) = x (pixels, c) * w, where w(k, j) is at weight[k * k_step + j * j_step].
class PixelProduct {
 public:
  PixelProduct(const ReadPixels& pixels, int64_t c, int64_t m, int64_t k_step, int64_t j_step,
               DType dtype)
      : pixels_(pixels),
        c_(c),
        m_(m),
        k_step_(k_step),
        j_step_(j_step),
        lanes_(LanesFor(kLanes)),
        vectors_((m + lanes_ - 1) / lanes_),
        panels_(std::max<int64_t>(1, vectors_ / 2)),
        blocks_((c + kDepth - 1) / kDepth),
        rows_(dtype == DType::kF32 ? kRows : std::clamp<int64_t>(kFloats / m / 12 * 12, 24, kRows)),
        threads_(TeamSize()),
        weight_(scratch_.Add<float>(c * vectors_ * lanes_)),
        bias_(scratch_.Add<float>(vectors_ * lanes_)),
        offsets_(scratch_.Add<int64_t>(threads_ * rows_)),
        x_(scratch_.Add<float>(dtype == DType::kF32 ? 0 : threads_ * rows_ * kDepth)),
        y_(scratch_.Add<float>(dtype == DType::kF32 ? 0 : threads_ * rows_ * m)) {
    for (int64_t k = 0; k < kDepth; ++k) taps_.push_back(k);
  }

  size_t ScratchBytes() const { return scratch_.Bytes(); }
  // Writes max(0, y) if `rectify`. `bias` is null for 0.
  template <class T>
  void Run(const T* x, const float* weight, const float* bias, bool rectify, T* y,
           std::span<std::byte> scratch) const {
    ParallelRanges(blocks_ * panels_, 1 + (int64_t{1} << 15) / (kDepth * 2 * lanes_),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) Pack(weight, i, weight_.At(scratch));
                   });
    if (bias != nullptr) {
      std::copy_n(bias, m_, bias_.At(scratch));
      std::fill(bias_.At(scratch) + m_, bias_.At(scratch) + vectors_ * lanes_, 0.0f);
    }
    const float* const start = bias != nullptr ? bias_.At(scratch) : nullptr;
    const int64_t tiles = (pixels_.count + kTileRows - 1) / kTileRows;
    RunParts(threads_, [&](int part) {
      int64_t begin = tiles * part / threads_ * kTileRows;
      const int64_t end = std::min(tiles * (part + 1) / threads_ * kTileRows, pixels_.count);
      for (; begin < end; begin += rows_) {
        const int64_t rows = std::min(rows_, end - begin);
        RunRows(x, begin, rows, part, start, rectify, y + begin * m_, scratch);
      }
    });
  }

 private:
  static constexpr int64_t kDepth = 256;  // inputs of a panel: 16 KiB of the first-level cache
  static constexpr int64_t kRows = 192;   // pixels of a block: 192 KiB of the second-level cache
  static constexpr int64_t kFloats = 48 << 10;  // sums of a block in bf16
  static constexpr int64_t kTileRows = 12;

  // Returns the first input of a block.
  int64_t Depth(int64_t block) const { return c_ * block / blocks_; }
  // Returns the first column of a panel. The last panel may have one or three vectors.
  int64_t Column(int64_t panel) const {
    return panel < panels_ ? panel * 2 * lanes_ : vectors_ * lanes_;
  }
  // Returns where a panel of a block is in the packed weight.
  int64_t PanelAt(int64_t block, int64_t panel) const {
    return Depth(block) * vectors_ * lanes_ + Column(panel) * (Depth(block + 1) - Depth(block));
  }

  // Packs one panel of one block to (inputs, columns of the panel).
  void Pack(const float* weight, int64_t task, float* packed) const {
    const int64_t block = task / panels_, panel = task % panels_;
    const int64_t first = Column(panel), width = Column(panel + 1) - first;
    const int64_t columns = std::min(width, m_ - first);
    float* to = packed + PanelAt(block, panel);
    for (int64_t k = Depth(block); k < Depth(block + 1); ++k, to += width) {
      const float* from = weight + k * k_step_ + first * j_step_;
      for (int64_t j = 0; j < columns; ++j) to[j] = from[j * j_step_];
      std::fill(to + columns, to + width, 0.0f);
    }
  }

  // Computes y for `rows` pixels from pixel `first` on.
  template <class T>
  void RunRows(const T* x, int64_t first, int64_t rows, int part, const float* bias, bool rectify,
               T* y, std::span<std::byte> scratch) const {
    constexpr bool kFloat = std::is_same_v<T, float>;
    int64_t* const offsets = offsets_.At(scratch) + part * rows_;
    float* const floats = x_.At(scratch) + part * rows_ * kDepth;
    float* sums;
    if constexpr (kFloat) {
      sums = y;
    } else {
      sums = y_.At(scratch) + part * rows_ * m_;
    }
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t k0 = Depth(block), depth = Depth(block + 1) - k0;
      const float* from;
      if constexpr (kFloat) {
        from = x + k0;
        for (int64_t r = 0; r < rows; ++r) offsets[r] = pixels_.At(first + r) * c_;
      } else {
        from = floats;
        for (int64_t r = 0; r < rows; ++r) {
          offsets[r] = r * depth;
          ToFloats(x + pixels_.At(first + r) * c_ + k0, depth, floats + r * depth);
        }
      }
      for (int64_t panel = 0; panel < panels_; ++panel) {
        const int64_t column = Column(panel), width = Column(panel + 1) - column;
        MultiplyPixels({.x = from,
                        .pixel = offsets,
                        .tap = taps_.data(),
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
    if (!kFloat || rectify) {
      WithWideLanes([&](auto lanes) {
        using V = typename decltype(lanes)::Type;
        CompiledFor<V, StoreFloats<V, T>, const float*, int64_t, bool, T*>()(sums, rows * m_,
                                                                             rectify, y);
      });
    }
  }

  template <class T>
  static void ToFloats(const T* from, int64_t count, float* to) {
    WithWideLanes([=](auto lanes) {
      using V = typename decltype(lanes)::Type;
      CompiledFor<V, CopyToFloats<V, T>, const T*, int64_t, float*>()(from, count, to);
    });
  }

  ReadPixels pixels_;
  int64_t c_, m_, k_step_, j_step_;
  int64_t lanes_, vectors_, panels_;
  int64_t blocks_;  // of the inputs
  int64_t rows_;    // pixels of a block
  int threads_;
  std::vector<int64_t> taps_;
  ScratchLayout scratch_;
  ScratchRegion<float> weight_, bias_;
  ScratchRegion<int64_t> offsets_;
  ScratchRegion<float> x_, y_;
};

// Computes y as a product of the pixels of x and the weight.
class OwnPointwiseForward final : public ConvForward {
 public:
  explicit OwnPointwiseForward(const ConvDesc& desc)
      : product_(ReadPixels(desc), desc.in_channels, desc.out_channels, 1, desc.in_channels,
                 desc.dtype),
        bias_(desc.bias),
        relu_(desc.relu),
        dtype_(desc.dtype) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    DispatchCpuDtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      product_.Run(static_cast<const T*>(x), weight, bias_ ? bias : nullptr, relu_,
                   static_cast<T*>(y), scratch);
    });
  }

 private:
  PixelProduct product_;
  bool bias_, relu_;
  DType dtype_;
};

// Computes dx as a product of the pixels of dy and the transposed weight.
class OwnPointwiseData final : public ConvBackwardData {
 public:
  explicit OwnPointwiseData(const ConvDesc& desc)
      : product_(ReadPixels(desc), desc.out_channels, desc.in_channels, desc.in_channels, 1,
                 desc.dtype),
        dtype_(desc.dtype) {}

  std::string Name() const override { return "own product"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    DispatchCpuDtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      product_.Run(static_cast<const T*>(dy), weight, nullptr, false, static_cast<T*>(dx), scratch);
    });
  }

 private:
  PixelProduct product_;
  DType dtype_;
};

constexpr const char* kF32IsFaster = "oneDNN has compiled code for f32, which is faster";

// Accepts bf16 unless OwnPointwiseRefuses gives a reason.
KernelOrReason<ConvForward> TakeOwnPointwiseForward(const Device&, const ConvDesc& desc) {
  if (auto why = OwnPointwiseRefuses(desc); !why.empty()) return Unsupported{why};
  if (desc.dtype == DType::kF32) return Unsupported{kF32IsFaster};
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

std::string OwnPointwiseRefuses(const ConvDesc& desc) {
  if (!HasWideLanes()) return "it needs AVX2";
  if (LanesFor(kLanes) == kLanes) return "oneDNN is faster with AVX-512";
  if (desc.in.size() != 2 || desc.group != 1) return "it supports images without groups only";
  for (size_t i = 0; i < 2; ++i) {
    if (desc.kernel[i] != 1 || desc.pad[i] != 0) return "the kernel is not 1 x 1 without padding";
  }
  return desc.in_channels < 8 || desc.out_channels < 8 ? "fewer than 8 channels" : "";
}

KernelOrReason<ConvBackwardData> OwnPointwiseDataOf(const ConvDesc& desc) {
  if (auto why = OwnPointwiseRefuses(desc); !why.empty()) return Unsupported{why};
  if (desc.dtype == DType::kF32) return Unsupported{kF32IsFaster};
  if (ReadPixels(desc).HasStride()) return Unsupported{"the stride is not 1"};
  return std::make_unique<OwnPointwiseData>(desc);
}

}  // namespace trainer::cpu

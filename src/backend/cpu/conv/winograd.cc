#include "cpu/conv/winograd.h"

#include <algorithm>

#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// The forward pass or the data gradient. Each thread takes some tiles, and only a part of the
// outputs if there are few tiles.
class WinogradProduct {
 public:
  WinogradProduct(const WinogradShape& shape, const KernelSteps& steps, int threads)
      : s_(shape),
        steps_(steps),
        threads_(threads),
        splits_(OutputSplits(shape, threads)),
        split_panels_((FirstPanel(splits_) + splits_ - 1) / splits_),
        u_group_(s_.points * KernelStep(s_.c, s_.m)),
        v_floats_(s_.points * TileRange{0, BlockTiles(s_.points), s_.c}.Step()),
        y_floats_(s_.points * PointStep(split_panels_ * PanelOutputs() * BlockTiles(s_.points))),
        u_(scratch_.Add<float>(s_.group * u_group_)),
        v_(scratch_.Add<float>(threads * (v_floats_ + y_floats_))) {}

  size_t ScratchBytes() const { return scratch_.Bytes(); }
  // Transforms the kernels, then transforms, multiplies and transforms back the tiles. Writes
  // max(0, y) if `rectify`; `bias` is null for 0.
  template <class T>
  void Run(const T* x, const float* weight, const float* bias, bool rectify, T* y,
           std::span<std::byte> scratch) const {
    float* const u = u_.At(scratch);
    RunParts(threads_, [&](int part) { TransformKernels(weight, part, u); });
    const int64_t shares = threads_ / splits_;  // of the tiles
    const int64_t share = (s_.tiles + shares - 1) / shares;
    const int64_t blocks = (share + BlockTiles(s_.points) - 1) / BlockTiles(s_.points);
    const int64_t tasks = s_.group * blocks;  // of each thread
    RunParts(static_cast<int>(threads_ * tasks), threads_, [&](int part, int thread) {
      const int64_t owner = part / tasks, g = part % tasks / blocks;
      const int64_t block = owner / splits_ * blocks + part % blocks, all = shares * blocks;
      const int64_t first = s_.tiles * block / all, end = s_.tiles * (block + 1) / all;
      if (first == end) return;
      RunTiles({first, end - first, s_.c}, owner % splits_, u + g * u_group_, x + g * s_.c,
               bias != nullptr ? bias + g * s_.m : bias, rectify, y + g * s_.m,
               v_.At(scratch) + thread * (v_floats_ + y_floats_));
    });
  }

 private:
  // Returns into how many parts the outputs are divided, a power of two: more than 1 if threads
  // would have few tiles.
  static int OutputSplits(const WinogradShape& s, int threads) {
    constexpr int64_t kFew = 48;  // tiles per thread
    int splits = 1;
    while (threads % (splits * 2) == 0 && s.tiles * splits < kFew * threads &&
           splits * 2 * PanelOutputs() <= s.m) {
      splits *= 2;
    }
    return splits;
  }
  // Returns the first panel of a split.
  int64_t FirstPanel(int64_t split) const {
    return (s_.m + PanelOutputs() - 1) / PanelOutputs() * split / splits_;
  }

  // Computes one of threads_ parts of the kernels at the points.
  void TransformKernels(const float* weight, int part, float* u) const {
    const int64_t vectors = RoundUpToLanes(s_.m) / kLanes, all = s_.group * vectors * s_.c;
    int64_t at = all * part / threads_;
    for (const int64_t end = all * (part + 1) / threads_; at < end;) {
      const int64_t vector = at / s_.c, c0 = at % s_.c, c1 = std::min(s_.c, c0 + end - at);
      const int64_t g = vector / vectors;
      KernelsToPoints(weight + g * s_.m * s_.c * s_.tile.taps * s_.tile.taps, steps_, c0, c1, s_.c,
                      vector % vectors * kLanes, s_.m, u + g * u_group_);
      at += c1 - c0;
    }
  }

  // Computes the outputs of a range of tiles, for one group and one split of the outputs. `v` is
  // scratch for the data at the points.
  template <class T>
  void RunTiles(const TileRange& range, int split, const float* u, const T* x, const float* bias,
                bool rectify, T* y, float* v) const {
    const int64_t begin = FirstPanel(split), end = FirstPanel(split + 1);
    const int64_t column = begin * PanelOutputs();
    const TileRange out = {range.first, range.count, std::min(end * PanelOutputs(), s_.m) - column};
    float* product = v + v_floats_;
    InputToPoints(x, s_.Input(), s_.tile, range, v);
    for (int64_t p = 0; p < s_.points; ++p) {
      MultiplyPoint(v + p * range.Step(), range.count, s_.c, u + p * KernelStep(s_.c, s_.m), s_.m,
                    begin, end, product + p * out.Step());
    }
    PointsToOutput(product, out, s_.tile, bias != nullptr ? bias + column : bias, rectify,
                   s_.Output(), y + column);
  }

  WinogradShape s_;
  KernelSteps steps_;
  int threads_;
  int splits_;            // parts of the outputs, for threads with the same tiles
  int64_t split_panels_;  // maximum panels of a split
  int64_t u_group_, v_floats_, y_floats_;
  ScratchLayout scratch_;
  ScratchRegion<float> u_, v_;
};

bool FillVectors(const WinogradShape& s) { return s.c % kLanes == 0 && s.m % kLanes == 0; }

// Returns the shape of the forward pass. With 5 x 5 kernels and LeNet's channels, the rounding
// errors of outputs in tiles of 4 x 4 changed losses by more than 2e-4: against the golden nets
// (nets_golden_test), and between one rank and several (rank_nets_test).
WinogradShape ForwardShape(const ConvDesc& desc) {
  const WinogradShape whole(desc);
  return whole.tile.taps == 5 && !FillVectors(whole) ? WinogradShape(desc, 2) : whole;
}

// Multiplies x by the weight, with bias and ReLU in the last transform.
class WinogradForward final : public ConvForward {
 public:
  explicit WinogradForward(const ConvDesc& desc)
      : product_(ForwardShape(desc), StepsOf(desc), TeamSize()),
        bias_(desc.bias),
        relu_(desc.relu),
        dtype_(desc.dtype) {}

  std::string Name() const override { return "own Winograd"; }
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
  // Describes the weight (M, C, kernel, kernel).
  static KernelSteps StepsOf(const ConvDesc& desc) {
    const Shape weight = desc.WeightShape();
    return {ForwardShape(desc).tile, weight.Count(2), weight.Count(1), false};
  }

  WinogradProduct product_;
  bool bias_, relu_;
  DType dtype_;
};

// Multiplies dy by the weight with its taps reversed and inputs and outputs exchanged.
class WinogradBackwardData final : public ConvBackwardData {
 public:
  explicit WinogradBackwardData(const ConvDesc& desc)
      : product_(WinogradShape(desc).Transposed(), StepsOf(desc), TeamSize()), dtype_(desc.dtype) {}

  std::string Name() const override { return "own Winograd"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    DispatchCpuDtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      product_.Run(static_cast<const T*>(dy), weight, nullptr, false, static_cast<T*>(dx), scratch);
    });
  }

 private:
  // Describes the weight as (C, M) with reversed taps.
  static KernelSteps StepsOf(const ConvDesc& desc) {
    const Shape weight = desc.WeightShape();
    return {WinogradShape(desc).tile, weight.Count(1), weight.Count(2), true};
  }

  WinogradProduct product_;
  DType dtype_;
};

// Accepts a convolution unless WinogradRefuses or WinogradLoses gives a reason.
KernelOrReason<ConvForward> TakeWinogradForward(const Device&, const ConvDesc& desc) {
  if (auto why = WinogradRefuses(desc); !why.empty()) return Unsupported{why};
  if (auto why = WinogradLoses(ForwardShape(desc)); !why.empty()) return Unsupported{why};
  return MakeWinogradForward(desc);
}
// Accepts a convolution unless WinogradRefuses, or WinogradLoses for the transposed shape, gives a
// reason.
KernelOrReason<ConvBackwardData> TakeWinogradData(const Device&, const ConvDesc& desc) {
  if (auto why = WinogradRefuses(desc); !why.empty()) return Unsupported{why};
  if (auto why = WinogradLoses(WinogradShape(desc).Transposed()); !why.empty()) {
    return Unsupported{why};
  }
  return MakeWinogradBackwardData(desc);
}

const RegisterConvKernel<ConvForward> kConvWinogradForward({DeviceKind::kCpu, priority::kOwn + 8,
                                                            "own Winograd", TakeWinogradForward});
const RegisterConvKernel<ConvBackwardData> kConvWinogradData({DeviceKind::kCpu, priority::kOwn + 8,
                                                              "own Winograd", TakeWinogradData});

}  // namespace

std::string WinogradRefuses(const ConvDesc& desc) {
  constexpr int64_t kMaxTaps = int64_t{1} << 26;  // taps per output; offsets of 16 outputs are ints
  if (!HasWideLanes()) return "it needs AVX2";
  if (desc.dtype != DType::kF32 && HasBf16Instructions()) {
    return "oneDNN is faster with bf16 instructions";
  }
  if (desc.in.size() != 2) return "it supports images only";
  if (std::min(desc.in_channels, desc.out_channels) / desc.group < kLanes) {
    return "a group has fewer than 16 channels";
  }
  if (desc.kernel[0] != desc.kernel[1] || (desc.kernel[0] != 3 && desc.kernel[0] != 5)) {
    return "the kernel is neither 3 x 3 nor 5 x 5";
  }
  for (size_t i = 0; i < 2; ++i) {
    if (desc.stride[i] != 1) return "the stride is not 1";
    if (desc.dilation[i] != 1) return "the kernel is dilated";
    if (desc.pad[i] >= desc.kernel[i]) return "the pad is as long as the kernel";
  }
  return desc.WeightShape().Count(1) > kMaxTaps ? "the weight is too large" : "";
}

std::string WinogradLoses(const WinogradShape& s) {
  constexpr int64_t kMaxFloats = int64_t{36} << 20;  // limit for the transformed kernels
  const int64_t direct = s.batch * s.oh * s.ow * s.tile.taps * s.tile.taps;
  if (s.tiles < 32) return Join(s.tiles, " tiles are too few to justify transforming the kernels");
  if (direct < 2 * s.points * s.tiles) return "its tiles reach too far beyond the edge";
  if (direct * s.m < 2 * s.points * s.tiles * RoundUpToLanes(s.m)) {
    return "the output channels fill too few vectors of 16";
  }
  // Measured with chains of convolutions of 14 x 14 pixels and 16 to 100 channels.
  if (s.tile.taps == 3 && !FillVectors(s) && std::min(s.c, s.m) < 32 && LanesFor(kLanes) < kLanes) {
    return "with AVX2, other kernels are faster for so few channels that do not fill vectors";
  }
  return s.group * s.points * KernelStep(s.c, s.m) > kMaxFloats
             ? "the transformed kernels are too large"
             : "";
}

std::string WinogradWeightLoses(const WinogradShape& s) {
  if (auto why = WinogradLoses(s); !why.empty()) return why;
  return s.tiles < 45 ? Join(s.tiles, " tiles are too few to justify transforming the gradient")
                      : "";
}

WinogradShape::WinogradShape(const ConvDesc& desc, int64_t outputs)
    : batch(desc.batch),
      group(desc.group),
      c(desc.in_channels / desc.group),
      m(desc.out_channels / desc.group),
      h(desc.in[0]),
      w(desc.in[1]),
      oh(desc.Out()[0]),
      ow(desc.Out()[1]),
      ph(desc.pad[0]),
      pw(desc.pad[1]),
      tile{desc.kernel[0], outputs} {
  Tile();
}

void WinogradShape::Tile() {
  points = tile.Points() * tile.Points();
  down = (oh + tile.outputs - 1) / tile.outputs;
  across = (ow + tile.outputs - 1) / tile.outputs;
  tiles = batch * down * across;
}

WinogradShape WinogradShape::Transposed() const {
  WinogradShape transposed = *this;
  std::swap(transposed.c, transposed.m);
  std::swap(transposed.h, transposed.oh);
  std::swap(transposed.w, transposed.ow);
  transposed.ph = tile.taps - 1 - ph;
  transposed.pw = tile.taps - 1 - pw;
  transposed.Tile();
  return transposed;
}

std::unique_ptr<ConvForward> MakeWinogradForward(const ConvDesc& desc) {
  return std::make_unique<WinogradForward>(desc);
}

std::unique_ptr<ConvBackwardData> MakeWinogradBackwardData(const ConvDesc& desc) {
  return std::make_unique<WinogradBackwardData>(desc);
}

}  // namespace trainer::cpu

#include "cpu/conv_winograd.h"

#include <algorithm>

#include "cpu/conv_segment.h"
#include "trainer/backend/parallel_for.h"

namespace trainer::cpu {
namespace {

// The product of a forward pass or a data gradient. Threads take tiles, or part of the outputs
// each where the tiles are few.
class WinogradProduct {
 public:
  WinogradProduct(const WinogradShape& shape, const KernelSteps& steps, int threads)
      : s_(shape),
        steps_(steps),
        threads_(threads),
        splits_(OutputSplits(shape, threads)),
        split_panels_((Panels(splits_) + splits_ - 1) / splits_),
        u_group_(s_.points * PointStep(s_.c * s_.m)),
        v_floats_(s_.points * PointStep(s_.c * BlockTiles(s_.points))),
        y_floats_(s_.points * PointStep(split_panels_ * kPanel * BlockTiles(s_.points))),
        u_at_(room_.Take(s_.group * u_group_)),
        v_at_(room_.Take(threads * (v_floats_ + y_floats_))) {}

  size_t ScratchBytes() const { return room_.Bytes(); }
  void Run(const float* x, const float* weight, const float* bias, bool rectify, float* y,
           std::span<std::byte> scratch) const {
    float* base = Floats(scratch);
    ForEachPart(threads_, [&](int part) { TransformKernels(weight, part, base + u_at_); });
    ForEachPart(threads_, [&](int part) {
      float* v = base + v_at_ + part * (v_floats_ + y_floats_);
      const int64_t parts = threads_ / splits_, at = part / splits_;
      const int64_t begin = s_.tiles * at / parts, count = s_.tiles * (at + 1) / parts - begin;
      const int64_t blocks = (count + BlockTiles(s_.points) - 1) / BlockTiles(s_.points);
      for (int64_t i = 0; i < s_.group * blocks; ++i) {
        const int64_t g = i / blocks, block = i % blocks;
        const int64_t first = count * block / blocks;
        RunTiles({begin + first, count * (block + 1) / blocks - first, s_.c}, part % splits_,
                 base + u_at_ + g * u_group_, x + g * s_.c,
                 bias != nullptr ? bias + g * s_.m : bias, rectify, y + g * s_.m, v);
      }
    });
  }

 private:
  static int OutputSplits(const WinogradShape& s, int threads) {
    constexpr int64_t kFew = 48;  // tiles of a thread
    int splits = 1;
    while (threads % (splits * 2) == 0 && s.tiles * splits < kFew * threads &&
           splits * 2 * kPanel <= s.m) {
      splits *= 2;
    }
    return splits;
  }
  // The first panel of a split.
  int64_t Panels(int64_t split) const { return (s_.m + kPanel - 1) / kPanel * split / splits_; }

  void TransformKernels(const float* weight, int part, float* u) const {
    const int64_t vectors = s_.m / kLanes, all = s_.group * vectors * s_.c;
    int64_t at = all * part / threads_;
    for (const int64_t end = all * (part + 1) / threads_; at < end;) {
      const int64_t vector = at / s_.c, c0 = at % s_.c, c1 = std::min(s_.c, c0 + end - at);
      const int64_t g = vector / vectors;
      KernelsToPoints(weight + g * s_.m * s_.c * s_.kernel * s_.kernel, steps_, c0, c1, s_.c,
                      vector % vectors * kLanes, s_.m, u + g * u_group_);
      at += c1 - c0;
    }
  }

  void RunTiles(const TileRange& range, int split, const float* u, const float* x,
                const float* bias, bool rectify, float* y, float* v) const {
    const int64_t begin = Panels(split), end = Panels(split + 1), column = begin * kPanel;
    const TileRange out = {range.first, range.count, std::min(end * kPanel, s_.m) - column};
    const int64_t v_point = PointStep(range.channels * range.count);
    const int64_t y_point = PointStep(out.channels * out.count);
    float* product = v + v_floats_;
    InputToPoints(x, s_.Input(), s_.kernel, range, v);
    for (int64_t p = 0; p < s_.points; ++p) {
      MultiplyPoint(v + p * v_point, range.count, s_.c, u + p * PointStep(s_.c * s_.m), s_.m, begin,
                    end, product + p * y_point);
    }
    PointsToOutput(product, out, s_.kernel, bias != nullptr ? bias + column : bias, rectify,
                   s_.Output(), y + column);
  }

  WinogradShape s_;
  KernelSteps steps_;
  int threads_;
  int splits_;            // of the outputs, over threads with the same tiles
  int64_t split_panels_;  // the most of a split
  int64_t u_group_, v_floats_, y_floats_;
  Room room_;
  int64_t u_at_, v_at_;
};

class WinogradForward final : public ConvForward {
 public:
  explicit WinogradForward(const ConvDesc& desc)
      : product_(WinogradShape(desc), StepsOf(desc), TeamSize()),
        bias_(desc.bias),
        relu_(desc.relu) {}

  std::string Name() const override { return "own Winograd"; }
  bool Rectifies() const override { return true; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    product_.Run(static_cast<const float*>(x), weight, bias_ ? bias : nullptr, relu_,
                 static_cast<float*>(y), scratch);
  }

 private:
  static KernelSteps StepsOf(const ConvDesc& desc) {
    const Shape weight = desc.WeightShape();
    return {desc.kernel[0], weight.Count(2), weight.Count(1), false};
  }

  WinogradProduct product_;
  bool bias_, relu_;
};

// dy times the weight with its taps turned round and inputs and outputs exchanged.
class WinogradBackwardData final : public ConvBackwardData {
 public:
  explicit WinogradBackwardData(const ConvDesc& desc)
      : product_(WinogradShape(desc).Turned(), StepsOf(desc), TeamSize()) {}

  std::string Name() const override { return "own Winograd"; }
  size_t ScratchBytes() const override { return product_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    product_.Run(static_cast<const float*>(dy), weight, nullptr, false, static_cast<float*>(dx),
                 scratch);
  }

 private:
  static KernelSteps StepsOf(const ConvDesc& desc) {
    const Shape weight = desc.WeightShape();
    return {desc.kernel[0], weight.Count(1), weight.Count(2), true};
  }

  WinogradProduct product_;
};

}  // namespace

bool WinogradTakes(const ConvDesc& desc) {
  if (DetectCpuIsa() != CpuIsa::kAvx512 || desc.dtype != DType::kF32 || desc.in.size() != 2 ||
      desc.in_channels / desc.group % kLanes != 0 || desc.out_channels / desc.group % kLanes != 0 ||
      desc.kernel[0] != desc.kernel[1] || (desc.kernel[0] != 3 && desc.kernel[0] != 5)) {
    return false;
  }
  constexpr int64_t kMostTaps = int64_t{1} << 26;  // of an output; offsets of 16 outputs are ints
  for (size_t i = 0; i < 2; ++i) {
    if (desc.stride[i] != 1 || desc.dilation[i] != 1 || desc.pad[i] >= desc.kernel[i]) return false;
  }
  return desc.WeightShape().Count(1) <= kMostTaps;
}

bool WinogradPays(const WinogradShape& s) {
  constexpr int64_t kMostFloats = int64_t{36} << 20;  // of the kernels at the points
  const int64_t direct = s.batch * s.oh * s.ow * s.kernel * s.kernel;
  return s.tiles >= 32 && direct >= 2 * s.points * s.tiles &&
         s.points * s.group * s.c * s.m <= kMostFloats;
}

bool WinogradWeightPays(const WinogradShape& s) { return WinogradPays(s) && s.tiles >= 45; }

WinogradShape::WinogradShape(const ConvDesc& desc)
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
      kernel(desc.kernel[0]) {
  Tile();
}

void WinogradShape::Tile() {
  points = (kernel + kTile - 1) * (kernel + kTile - 1);
  down = (oh + kTile - 1) / kTile;
  across = (ow + kTile - 1) / kTile;
  tiles = batch * down * across;
}

WinogradShape WinogradShape::Turned() const {
  WinogradShape turned = *this;
  std::swap(turned.c, turned.m);
  std::swap(turned.h, turned.oh);
  std::swap(turned.w, turned.ow);
  turned.ph = kernel - 1 - ph;
  turned.pw = kernel - 1 - pw;
  turned.Tile();
  return turned;
}

std::unique_ptr<ConvForward> MakeWinogradForward(const ConvDesc& desc) {
  return std::make_unique<WinogradForward>(desc);
}

std::unique_ptr<ConvBackwardData> MakeWinogradBackwardData(const ConvDesc& desc) {
  return std::make_unique<WinogradBackwardData>(desc);
}

}  // namespace trainer::cpu

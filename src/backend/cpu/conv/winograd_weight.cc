#include <algorithm>

#include "cpu/conv/winograd.h"
#include "cpu/group_product.h"
#include "cpu/simd.h"

namespace trainer::cpu {
namespace {

// Computes the gradients of the weight and the bias. Each thread sums over some tiles into its own
// array; the arrays are then added in a fixed order. If the arrays would be large, groups of
// threads share one, and each thread computes a part of the outputs.
class WinogradBackwardWeight final : public ConvBackwardWeight {
 public:
  explicit WinogradBackwardWeight(const ConvDesc& desc)
      : s_(desc),
        steps_{s_.tile, desc.WeightShape().Count(2), desc.WeightShape().Count(1), false},
        bias_(desc.bias),
        dtype_(desc.dtype),
        threads_(TeamSize()),
        splits_(OutputSplits(s_, threads_)),
        point_(KernelStep(s_.c, s_.m)),
        part_(s_.group * s_.points * point_),
        v_floats_(s_.points * TileRange{0, BlockTiles(s_.points), s_.c}.Step()),
        d_floats_(s_.points * TileRange{0, BlockTiles(s_.points), s_.m}.Step()),
        sums_(scratch_.Add<float>(threads_ / splits_ * part_)),
        v_(scratch_.Add<float>(threads_ * (v_floats_ + d_floats_))),
        bias_sums_(scratch_.Add<float>(threads_ * s_.group * s_.m)) {}

  std::string Name() const override { return "own Winograd"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    DispatchCpuDtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      RunTyped(static_cast<const T*>(x), static_cast<const T*>(dy), dweight, dbias, scratch);
    });
  }

 private:
  // Implements Run.
  template <class T>
  void RunTyped(const T* x, const T* dy, float* dweight, float* dbias,
                std::span<std::byte> scratch) const {
    float* const all_sums = sums_.At(scratch);
    RunParts(threads_, [&](int part) {
      float* sums = all_sums + part / splits_ * part_;
      for (int64_t g = 0; g < s_.group; ++g) {
        SumTiles(x + g * s_.c, dy + g * s_.m, part, sums + g * s_.points * point_,
                 v_.At(scratch) + part * (v_floats_ + d_floats_));
      }
    });
    RunParts(threads_, [&](int part) { AddSums(all_sums, part, dweight); });
    if (bias_ && dbias != nullptr) SumBias(dy, bias_sums_.At(scratch), dbias);
  }

  // Returns how many threads share an array of sums, a power of two.
  static int OutputSplits(const WinogradShape& s, int threads) {
    constexpr int64_t kMaxFloats = int64_t{12} << 20;  // limit for the sums of all threads
    const int64_t sums = s.group * s.points * KernelStep(s.c, s.m);
    int splits = 1;
    while (threads % (splits * 2) == 0 && sums * (threads / splits) > kMaxFloats &&
           splits * 2 * PanelOutputs() <= s.m) {
      splits *= 2;
    }
    return splits;
  }
  // Sums over the tiles of a part into its array of sums at the points, for one group and the
  // part's outputs. `v` is scratch.
  template <class T>
  void SumTiles(const T* x, const T* dy, int part, float* sums, float* v) const {
    const int64_t parts = threads_ / splits_, at = part / splits_, split = part % splits_;
    const int64_t panel = PanelOutputs(), panels = (s_.m + panel - 1) / panel;
    const int64_t first = panels * split / splits_, last = panels * (split + 1) / splits_;
    const int64_t column = first * panel, columns = std::min(last * panel, s_.m) - column;
    const int64_t begin = s_.tiles * at / parts, count = s_.tiles * (at + 1) / parts - begin;
    // There is at least one block, so that the sums are written.
    const int64_t blocks =
        std::max<int64_t>(1, (count + BlockTiles(s_.points) - 1) / BlockTiles(s_.points));
    float* d = v + v_floats_;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t skip = count * i / blocks, tiles = count * (i + 1) / blocks - skip;
      const TileRange inputs = {begin + skip, tiles, s_.c},
                      outputs = {begin + skip, tiles, columns};
      InputToPoints(x, s_.Input(), s_.tile, inputs, v);
      GradientToPoints(dy + column, s_.Output(), s_.tile, outputs, d);
      for (int64_t p = 0; p < s_.points; ++p) {
        AddPoint(v + p * inputs.Step(), d + p * outputs.Step(), tiles, s_.c, s_.m, first, last,
                 i == 0, sums + p * point_);
      }
    }
  }

  // Adds the arrays and transforms them back: one of threads_ parts of dweight.
  void AddSums(const float* sums, int part, float* dweight) const {
    const int64_t vectors = RoundUpToLanes(s_.m) / kLanes, all = s_.group * vectors * s_.c;
    const int64_t end = all * (part + 1) / threads_;
    for (int64_t at = all * part / threads_; at < end; ++at) {
      const int64_t g = at / s_.c / vectors, m = at / s_.c % vectors * kLanes;
      PointsToKernels(sums + g * s_.points * point_, threads_ / splits_, part_, steps_, at % s_.c,
                      s_.c, m, s_.m, dweight + g * s_.m * steps_.out_step);
    }
  }

  // Adds the sum of dy over all pixels to dbias. `sums` is scratch.
  template <class T>
  void SumBias(const T* dy, float* sums, float* dbias) const {
    const int64_t pixels = s_.batch * s_.oh * s_.ow, channels = s_.group * s_.m;
    RunParts(threads_, [&](int part) {
      const int64_t begin = pixels * part / threads_, end = pixels * (part + 1) / threads_;
      std::fill_n(sums + part * channels, channels, 0.0f);
      AddRows(dy + begin * channels, end - begin, channels, sums + part * channels);
    });
    for (int64_t m = 0; m < channels; ++m) {
      float sum = 0;
      for (int part = 0; part < threads_; ++part) sum += sums[part * channels + m];
      dbias[m] += sum;
    }
  }

  WinogradShape s_;
  KernelSteps steps_;
  bool bias_;
  DType dtype_;
  int threads_;
  int splits_;            // parts of the outputs, for threads with the same tiles
  int64_t point_, part_;  // floats in the sums of a point, and of a thread
  int64_t v_floats_, d_floats_;
  ScratchLayout scratch_;
  ScratchRegion<float> sums_, v_, bias_sums_;
};

// Accepts a convolution unless WinogradRefuses or WinogradWeightLoses gives a reason.
KernelOrReason<ConvBackwardWeight> TakeWinogradWeight(const Device&, const ConvDesc& desc) {
  if (auto why = WinogradRefuses(desc); !why.empty()) return Unsupported{why};
  if (auto why = WinogradWeightLoses(WinogradShape(desc)); !why.empty()) return Unsupported{why};
  return MakeWinogradBackwardWeight(desc);
}

const RegisterConvKernel<ConvBackwardWeight> kConvWinogradWeight(
    {DeviceKind::kCpu, priority::kOwn + 8, "own Winograd", TakeWinogradWeight});

}  // namespace

std::unique_ptr<ConvBackwardWeight> MakeWinogradBackwardWeight(const ConvDesc& desc) {
  return std::make_unique<WinogradBackwardWeight>(desc);
}

}  // namespace trainer::cpu

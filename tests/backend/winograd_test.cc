#include "cpu/conv/winograd.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <ostream>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct WinogradCase {
  const char* name;
  ConvDesc desc;
  int threads = 2;
};
void PrintTo(const WinogradCase& c, std::ostream* out) { *out << c.name; }

namespace {

ConvDesc Padded(int64_t n, int64_t c, int64_t h, int64_t w, int64_t m, int64_t kernel, int64_t ph,
                int64_t pw, int64_t group = 1) {
  ConvDesc desc = ImageConv(n, c, h, w, m, kernel, 1, 0, group);
  desc.pad = {ph, pw};
  return desc;
}

const WinogradCase kWinogradCases[] = {
    {"one_tile", Padded(1, 16, 6, 6, 16, 3, 0, 0), 1},
    {"one_pixel", Padded(1, 16, 1, 1, 16, 3, 1, 1)},
    {"one_output", Padded(2, 16, 3, 3, 32, 3, 0, 0)},
    {"whole_tiles", Padded(2, 32, 16, 8, 64, 3, 1, 1)},
    {"odd_sizes", Padded(3, 32, 13, 7, 48, 3, 1, 1)},
    {"no_pad", Padded(3, 48, 9, 17, 32, 3, 0, 0), 3},
    {"full_pad", Padded(2, 16, 5, 10, 80, 3, 2, 2)},
    {"two_pads", Padded(2, 16, 10, 5, 16, 3, 0, 2)},
    {"groups", Padded(2, 48, 11, 9, 96, 3, 1, 1, 3)},
    {"no_bias", WithoutBias(Padded(2, 16, 9, 9, 32, 3, 1, 1))},
    {"many_blocks", Padded(5, 16, 45, 31, 32, 3, 1, 1)},
    {"outputs_over_threads", Padded(1, 32, 7, 7, 128, 3, 1, 1), 4},
    {"odd_outputs_over_threads", Padded(1, 32, 7, 7, 144, 3, 1, 1), 4},
    {"more_threads_than_tiles", Padded(1, 16, 4, 4, 16, 3, 1, 1), 3},
    {"five_one_pixel", Padded(1, 16, 1, 1, 16, 5, 2, 2)},
    {"five_same", Padded(3, 32, 8, 8, 64, 5, 2, 2)},
    {"five_odd_sizes", Padded(2, 16, 7, 11, 48, 5, 2, 2), 3},
    {"five_no_pad", Padded(2, 16, 9, 6, 16, 5, 0, 0)},
    {"five_pads", Padded(2, 16, 6, 9, 32, 5, 1, 3)},
    {"five_full_pad", Padded(1, 32, 5, 5, 32, 5, 4, 4), 1},
    {"five_groups", Padded(2, 96, 9, 9, 64, 5, 2, 2, 2), 4},
    {"vectors_not_full", Padded(2, 20, 9, 9, 50, 3, 1, 1)},
    {"one_channel_more", Padded(2, 17, 7, 11, 33, 3, 1, 1), 3},
    {"one_channel_less", Padded(2, 31, 6, 6, 63, 3, 0, 0)},
    {"groups_not_full", Padded(2, 40, 9, 9, 60, 3, 1, 1, 2)},
    {"not_full_over_threads", Padded(1, 24, 7, 7, 136, 3, 1, 1), 4},
    {"five_not_full", Padded(3, 20, 12, 12, 50, 5, 0, 0)},
    {"five_groups_not_full", Padded(2, 54, 9, 6, 36, 5, 2, 2, 2), 4},
};

// Returns the bound relative to the largest sum of |x| |w|. Transformed values are larger, so
// errors are several times larger than in plain sums; a wrong coefficient gives 1e-3 or more.
// The bound for eight points is wider, because they round more than six.
float Bound(int points) { return points == 6 ? 2e-6f : 5e-6f; }

class WinogradTest : public testing::TestWithParam<WinogradCase> {
 protected:
  WinogradTest()
      : desc_(GetParam().desc),
        device_(MakeCpuDevice(GetParam().threads)),
        reference_(MakeReferenceConv(desc_)) {}

  void SetUp() override {
    TRAINER_CPU_ONLY("it has this kernel");
    if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
    ASSERT_EQ(cpu::WinogradRefuses(desc_), "");
  }
  static Values Random(const Shape& shape, uint32_t seed) {
    return Values::Random(shape, DType::kF32, seed);
  }
  static Values Sizes(const Values& of) {
    std::vector<float> sizes = of.ToVector();
    for (float& size : sizes) size = std::fabs(size);
    return Values::Of(static_cast<ConstTensor>(of).shape, sizes);
  }
  // Returns the points of tiles of 4 x 4.
  int Points() const { return desc_.kernel[0] == 3 ? 6 : 8; }
  // Returns the points of the forward pass, whose tiles are 2 x 2 if a kernel of 5 x 5 meets
  // channels that do not fill vectors of 16.
  int ForwardPoints() const {
    const int64_t c = desc_.in_channels / desc_.group, m = desc_.out_channels / desc_.group;
    return c % 16 == 0 && m % 16 == 0 ? Points() : 6;
  }
  // Expects |got - want| <= Bound(points) * the largest of `sums`.
  void ExpectNear(const Values& got, const Values& want, const Values& sums, int points) const {
    float top = 0;
    for (int64_t i = 0; i < sums.size(); ++i) top = std::max(top, sums[i]);
    for (int64_t i = 0; i < want.size(); ++i) {
      ASSERT_LE(std::fabs(got[i] - want[i]), Bound(points) * top) << got[i] << " at " << i;
    }
  }

  // Returns scratch filled with NaN, so that a read of unwritten memory is detected.
  static GuardedBytes Scratch(size_t bytes) {
    GuardedBytes scratch(bytes);
    std::fill(scratch.span().begin(), scratch.span().end(), std::byte{0xFF});
    return scratch;
  }

  ConvDesc desc_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ConvPrimitive> reference_;
};

TEST_P(WinogradTest, ForwardMatchesTheReference) {
  const Values x = Random(desc_.InShape(), 1), weight = Random(desc_.WeightShape(), 2);
  const Values bias = Random({desc_.out_channels}, 3);
  const Values y = Values::Unset(desc_.OutShape());
  Values want = Values::Unset(desc_.OutShape());
  const Values sums = Values::Unset(desc_.OutShape());
  reference_->Forward(x, weight.f32(), bias.f32(), want, {});
  reference_->Forward(Sizes(x), Sizes(weight).f32(), Sizes(bias).f32(), sums, {});
  for (const bool relu : {false, true}) {
    desc_.relu = relu;
    const auto step = cpu::MakeWinogradForward(desc_);
    GuardedBytes scratch = Scratch(step->ScratchBytes());
    for (int64_t i = 0; relu && i < want.size(); ++i) want.Set(i, std::max(0.0f, want[i]));
    for (int call = 0; call < 2; ++call) {
      step->Run(x.f32(), weight.f32(), bias.f32(), y.f32(), scratch.span());
      ExpectNear(y, want, sums, ForwardPoints());
    }
    EXPECT_TRUE(scratch.Intact());
  }
}

TEST_P(WinogradTest, DataGradientMatchesTheReference) {
  const Values dy = Random(desc_.OutShape(), 4), weight = Random(desc_.WeightShape(), 5);
  const Values dx = Values::Unset(desc_.InShape()), want = Values::Unset(desc_.InShape());
  const Values sums = Values::Unset(desc_.InShape());
  GuardedBytes reference_scratch(reference_->ScratchBytes());
  reference_->BackwardData(dy, weight.f32(), want, reference_scratch.span());
  reference_->BackwardData(Sizes(dy), Sizes(weight).f32(), sums, reference_scratch.span());
  const auto step = cpu::MakeWinogradBackwardData(desc_);
  GuardedBytes scratch = Scratch(step->ScratchBytes());
  for (int call = 0; call < 2; ++call) {
    step->Run(dy.f32(), weight.f32(), dx.f32(), scratch.span());
    ExpectNear(dx, want, sums, Points());
  }
  EXPECT_TRUE(scratch.Intact());
}

TEST_P(WinogradTest, WeightGradientIsAdded) {
  const Values x = Random(desc_.InShape(), 6), dy = Random(desc_.OutShape(), 7);
  const Values dweight = Random(desc_.WeightShape(), 8), dbias = Random({desc_.out_channels}, 9);
  const Values want = Random(desc_.WeightShape(), 8), want_bias = Random({desc_.out_channels}, 9);
  const Values sums = Sizes(want), bias_sums = Sizes(want_bias);
  const auto step = cpu::MakeWinogradBackwardWeight(desc_);
  GuardedBytes scratch = Scratch(step->ScratchBytes());
  for (int call = 0; call < 2; ++call) {
    step->Run(x.f32(), dy.f32(), dweight.f32(), dbias.f32(), scratch.span());
    reference_->BackwardWeight(x, dy, want.f32(), want_bias.f32(), {});
    reference_->BackwardWeight(Sizes(x), Sizes(dy), sums.f32(), bias_sums.f32(), {});
    ExpectNear(dweight, want, sums, Points());
    ExpectNear(dbias, want_bias, bias_sums, Points());
  }
  step->Run(x.f32(), dy.f32(), dweight.f32(), nullptr, scratch.span());
  ExpectNear(dbias, want_bias, bias_sums, Points());
  EXPECT_TRUE(scratch.Intact());
}

std::string NameOfCaseWinograd(const testing::TestParamInfo<WinogradCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, WinogradTest, testing::ValuesIn(kWinogradCases), NameOfCaseWinograd);

TEST(WinogradStepTest, RectifiesAndKeepsNaN) {
  TRAINER_CPU_ONLY("it has this kernel");
  if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  ConvDesc desc = Padded(1, 16, 8, 4, 16, 3, 1, 1);
  desc.relu = true;
  const Values x = Values::Random(desc.InShape(), DType::kF32, 1);
  const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 2);
  const Values y = Values::Unset(desc.OutShape());
  x.f32()[0] = NAN;
  const auto step = cpu::MakeWinogradForward(desc);
  GuardedBytes scratch(step->ScratchBytes());
  step->Run(x.f32(), weight.f32(), Values::Of({16}, {}).f32(), y.f32(), scratch.span());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_GE(y[y.size() - 1], 0);  // y's last element is in the other tile
}

TEST(WinogradStepTest, ReadsAndWritesBf16) {
  TRAINER_CPU_ONLY("it has this kernel");
  if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  const auto device = MakeCpuDevice(2);
  for (ConvDesc desc : {Padded(2, 32, 13, 7, 48, 3, 1, 1), Padded(2, 32, 9, 6, 64, 5, 2, 2, 2),
                        Padded(2, 20, 9, 7, 50, 3, 1, 1), Padded(2, 46, 9, 6, 58, 5, 2, 2, 2)}) {
    desc.dtype = DType::kBF16;
    const auto reference = MakeReferenceConv(desc);
    const auto forward = cpu::MakeWinogradForward(desc);
    const auto data = cpu::MakeWinogradBackwardData(desc);
    const auto weights = cpu::MakeWinogradBackwardWeight(desc);
    GuardedBytes scratch(
        std::max({forward->ScratchBytes(), data->ScratchBytes(), weights->ScratchBytes()}));
    GuardedBytes reference_scratch(reference->ScratchBytes());
    const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
    const Values dy = Values::Random(desc.OutShape(), desc.dtype, 2);
    const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 3);
    const Values bias = Values::Random({desc.out_channels}, DType::kF32, 4);
    const Values y = Values::Unset(desc.OutShape(), desc.dtype);
    const Values dx = Values::Unset(desc.InShape(), desc.dtype);
    const Values want_y = Values::Unset(desc.OutShape(), desc.dtype);
    const Values want_dx = Values::Unset(desc.InShape(), desc.dtype);
    forward->Run(x.f32(), weight.f32(), bias.f32(), y.f32(), scratch.span());
    reference->Forward(x, weight.f32(), bias.f32(), want_y, reference_scratch.span());
    ExpectClose(y, want_y, 1e-2f, "y");
    data->Run(dy.f32(), weight.f32(), dx.f32(), scratch.span());
    reference->BackwardData(dy, weight.f32(), want_dx, reference_scratch.span());
    ExpectClose(dx, want_dx, 1e-2f, "dx");
    const Values dweight = Values::Of(desc.WeightShape(), {}),
                 want = Values::Of(desc.WeightShape(), {});
    const Values dbias = Values::Of({desc.out_channels}, {});
    const Values want_bias = Values::Of({desc.out_channels}, {});
    weights->Run(x.f32(), dy.f32(), dweight.f32(), dbias.f32(), scratch.span());
    reference->BackwardWeight(x, dy, want.f32(), want_bias.f32(), reference_scratch.span());
    ExpectClose(dweight, want, 1e-4f, "dweight");  // f32 weights, from the same numbers
    ExpectClose(dbias, want_bias, 1e-5f, "dbias");
    EXPECT_TRUE(scratch.Intact());
  }
}

TEST(WinogradStepTest, IsTakenWhereItPays) {
  TRAINER_CPU_ONLY("it has this kernel");
  if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  const auto device = MakeCpuDevice(2);
  const auto name = [&](const ConvDesc& desc) { return device->NewConv(desc)->kernel(); };
  EXPECT_EQ(name(Padded(16, 64, 56, 56, 64, 3, 1, 1)), "own Winograd");
  EXPECT_EQ(name(Padded(64, 96, 27, 27, 256, 5, 2, 2, 2)), "own Winograd");
  EXPECT_EQ(name(Padded(64, 20, 12, 12, 50, 5, 0, 0)), "own Winograd");
  // With AVX2, the transforms cost too much for so few channels; 17 outputs fill half of a vector.
  EXPECT_EQ(name(Padded(64, 24, 16, 16, 24, 3, 1, 1)) == "own Winograd",
            DetectCpuIsa() == CpuIsa::kAvx512);
  EXPECT_THAT(name(Padded(64, 64, 8, 8, 17, 3, 0, 0)), Not(StartsWith("own Winograd")));
  // These have few tiles, or tiles that are mostly outside the image.
  EXPECT_THAT(name(Padded(1, 64, 14, 14, 64, 3, 1, 1)), Not(HasSubstr("Winograd")));
  EXPECT_THAT(name(Padded(64, 64, 5, 5, 64, 3, 1, 1)), Not(HasSubstr("Winograd")));
  // The transform costs more for a weight gradient.
  EXPECT_THAT(name(Padded(10, 64, 8, 8, 64, 5, 2, 2)),
              AllOf(StartsWith("own Winograd, data gradient own Winograd, weight gradient "),
                    Not(EndsWith("Winograd"))));
}

TEST(WinogradStepTest, RefusesWhatItCannotDo) {
  const ConvDesc good = Padded(1, 16, 8, 8, 16, 3, 1, 1);
  EXPECT_EQ(cpu::WinogradRefuses(good) == "", DetectCpuIsa() != CpuIsa::kBase);
  ConvDesc bf16 = good, strided = good, dilated = good, kernel = good, line = good;
  bf16.dtype = DType::kBF16;
  EXPECT_EQ(cpu::WinogradRefuses(bf16) == "",
            DetectCpuIsa() != CpuIsa::kBase && !HasBf16Instructions());
  strided.stride = {1, 2};
  dilated.dilation = {2, 1};
  kernel.kernel = {3, 5};
  line.in = line.kernel = line.stride = line.pad = line.dilation = {3};
  for (const ConvDesc& desc :
       {strided, dilated, kernel, line, Padded(1, 15, 8, 8, 16, 3, 1, 1),
        Padded(1, 32, 8, 8, 16, 3, 1, 1, 2), Padded(1, 16, 8, 8, 16, 3, 1, 3),
        Padded(1, 16, 8, 8, 16, 7, 1, 1)}) {
    EXPECT_NE(cpu::WinogradRefuses(desc), "") << desc.InShape().ToString();
  }
}

}  // namespace
}  // namespace trainer

// Convolutions of bf16 that are computed in floats (cpu/conv/in_floats.cc).

#include <gmock/gmock.h>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "support/test_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class InFloatsTest : public testing::Test {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("it has this kernel"); }

  // Returns the same numbers in another type.
  static Values As(DType dtype, const Values& of) {
    return Values::Of(static_cast<ConstTensor>(of).shape, of.ToVector(), dtype);
  }
  static void ExpectEqual(const Values& got, const Values& floats) {
    EXPECT_EQ(got.ToVector(), As(DType::kBF16, floats).ToVector());
  }
  // Expects the results of floats, rounded to bf16, in all three directions.
  static void ExpectResultsOfFloats(const ConvDesc& desc) {
    ConvDesc in_f32 = desc;
    in_f32.dtype = DType::kF32;
    const auto conv = MetaDevice().NewConv(desc), floats = MetaDevice().NewConv(in_f32);
    GuardedBytes scratch(std::max(conv->ScratchBytes(), floats->ScratchBytes()));
    const Values x = Values::Random(desc.InShape(), DType::kBF16, 1);
    const Values dy = Values::Random(desc.OutShape(), DType::kBF16, 2);
    const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 3);
    const Values bias = Values::Random({desc.out_channels}, DType::kF32, 4);
    const Values x32 = As(DType::kF32, x), dy32 = As(DType::kF32, dy);
    const Values y = Values::Unset(desc.OutShape(), DType::kBF16);
    const Values dx = Values::Unset(desc.InShape(), DType::kBF16);
    const Values y32 = Values::Unset(desc.OutShape()), dx32 = Values::Unset(desc.InShape());
    conv->Forward(x, weight.f32(), bias.f32(), y, scratch.span());
    floats->Forward(x32, weight.f32(), bias.f32(), y32, scratch.span());
    ExpectEqual(y, y32);
    conv->BackwardData(dy, weight.f32(), dx, scratch.span());
    floats->BackwardData(dy32, weight.f32(), dx32, scratch.span());
    ExpectEqual(dx, dx32);
    const Values dweight = Values::Random(desc.WeightShape(), DType::kF32, 5);
    const Values dbias = Values::Random({desc.out_channels}, DType::kF32, 6);
    const Values want = As(DType::kF32, dweight), want_bias = As(DType::kF32, dbias);
    conv->BackwardWeight(x, dy, dweight.f32(), dbias.f32(), scratch.span());
    floats->BackwardWeight(x32, dy32, want.f32(), want_bias.f32(), scratch.span());
    EXPECT_EQ(dweight.ToVector(), want.ToVector());
    EXPECT_EQ(dbias.ToVector(), want_bias.ToVector());
    EXPECT_TRUE(scratch.Intact());
  }
};

TEST_F(InFloatsTest, ReplacesTheLibraryWithoutInstructionsForBf16) {
  ConvDesc desc = ImageConv(3, 3, 23, 21, 20, 7, 2, 3);
  desc.dtype = DType::kBF16;
  const std::string kernel = MetaDevice().NewConv(desc)->kernel();
  if (HasBf16Instructions()) {
    EXPECT_THAT(kernel, Not(HasSubstr("in f32")));
  } else {
    EXPECT_THAT(kernel, HasSubstr("in f32"));
    ExpectResultsOfFloats(desc);
    desc.relu = true;
    ExpectResultsOfFloats(desc);
  }
}

TEST_F(InFloatsTest, ReplacesGradientsThatTheLibraryComputesWrongly) {
  ConvDesc odd = ImageConv(2, 8, 9, 9, 7, 1), strided = ImageConv(2, 8, 5, 5, 16, 5, 2);
  odd.dtype = strided.dtype = DType::kBF16;
  if (!HasBf16Instructions()) return;  // all directions are computed in floats
  EXPECT_THAT(MetaDevice().NewConv(odd)->kernel(), HasSubstr("data gradient onednn"));
  EXPECT_THAT(MetaDevice().NewConv(odd)->kernel(), HasSubstr("in f32, weight gradient"));
  EXPECT_THAT(MetaDevice().NewConv(strided)->kernel(), EndsWith("in f32"));
}

}  // namespace
}  // namespace trainer

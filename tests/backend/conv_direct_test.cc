// Tests the convolutions of a GPU that have the lowest priority, so a library is used before them.

#include <gtest/gtest.h>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "conv_kernels.h"

namespace trainer {
namespace {

template <class Step>
std::unique_ptr<Step> LastOf(const ConvDesc& desc) {
  for (const auto& one : KernelRegistry<ConvDesc, Step>::Get().all()) {
    if (one.device == DeviceKind::kCuda && one.priority == priority::kReference) {
      return one.make(MetaDevice(), desc).Take();
    }
  }
  return nullptr;
}

ConvDesc FourAxes() {
  return {.batch = 2,
          .in_channels = 4,
          .out_channels = 6,
          .group = 2,
          .in = {3, 4, 3, 5},
          .kernel = {2, 3, 1, 2},
          .stride = {1, 2, 1, 3},
          .pad = {1, 1, 0, 1},
          .dilation = {1, 1, 1, 2}};
}

ConvDesc Rectified() {
  ConvDesc desc = ImageConv(2, 6, 7, 9, 9, 3, 2, 1, 3);
  desc.relu = true;
  return desc;
}

const ConvCase kConvDirectCases[] = {{"dilated", ImageConv(3, 5, 9, 8, 40, 3, 1, 1, 1, 2)},
                                     {"rectified", Rectified()},
                                     {"four_axes", FourAxes()},
                                     {"depthwise", ImageConv(2, 12, 9, 8, 12, 3, 2, 1, 12)}};

class ConvDirectTest : public testing::TestWithParam<std::tuple<ConvCase, DType>> {
 protected:
  void SetUp() override {
    if (!TestsOnGpu()) GTEST_SKIP() << "about the kernels of a GPU";
  }
};
INSTANTIATE_TEST_SUITE_P(Of, ConvDirectTest,
                         testing::Combine(testing::ValuesIn(kConvDirectCases),
                                          testing::Values(DType::kF32, DType::kBF16, DType::kF16)),
                         NameOfCase);

TEST_P(ConvDirectTest, EqualsTheReferenceInAllDirections) {
  ConvDesc desc = std::get<0>(GetParam()).desc;
  desc.dtype = std::get<1>(GetParam());
  const auto plan = JoinConvKernels(desc, LastOf<ConvForward>(desc), LastOf<ConvBackwardData>(desc),
                                    LastOf<ConvBackwardWeight>(desc));
  EXPECT_EQ(plan->kernel(), "direct");
  const auto reference = MakeReferenceConv(desc);
  GuardedBytes scratch(plan->ScratchBytes()), reference_scratch(reference->ScratchBytes(), true);
  const float bound = BoundOf(desc.dtype, 2e-5f, 1e-2f);
  const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
  const Values dy = Values::Random(desc.OutShape(), desc.dtype, 2);
  const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 3);
  const Values bias = Values::Random({desc.out_channels}, DType::kF32, 4);
  const Values y = Values::Unset(desc.OutShape(), desc.dtype);
  const Values want_y = Values::Unset(desc.OutShape(), desc.dtype);
  plan->Forward(x, weight.f32(), bias.f32(), y, scratch.span());
  reference->Forward(x.Host(), weight.HostF32(), bias.HostF32(), want_y.Host(),
                     reference_scratch.span());
  ExpectClose(y, want_y, bound, "y");
  const Values dx = Values::Unset(desc.InShape(), desc.dtype);
  const Values want_dx = Values::Unset(desc.InShape(), desc.dtype);
  plan->BackwardData(dy, weight.f32(), dx, scratch.span());
  reference->BackwardData(dy.Host(), weight.HostF32(), want_dx.Host(), reference_scratch.span());
  ExpectClose(dx, want_dx, bound, "dx");
  plan->BackwardWeight(x, dy, weight.f32(), bias.f32(), scratch.span());
  const Values want_weight = Values::Random(desc.WeightShape(), DType::kF32, 3);
  const Values want_bias = Values::Random({desc.out_channels}, DType::kF32, 4);
  reference->BackwardWeight(x.Host(), dy.Host(), want_weight.HostF32(), want_bias.HostF32(),
                            reference_scratch.span());
  ExpectClose(weight, want_weight, bound, "dweight");
  ExpectClose(bias, want_bias, bound, "dbias");
}

}  // namespace
}  // namespace trainer

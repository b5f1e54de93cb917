#include "trainer/backend/primitives/conv.h"

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "trainer/backend/device/device.h"

namespace trainer {
namespace {

ConvDesc Without(ConvDesc desc, bool bias) {
  desc.bias = bias;
  return desc;
}

ConvDesc RectangularConv() {
  return {.batch = 2,
          .in_channels = 5,
          .out_channels = 7,
          .in = {9, 14},
          .kernel = {3, 2},
          .stride = {1, 3},
          .pad = {2, 0},
          .dilation = {2, 1}};
}

ConvDesc DilatedRows() {
  ConvDesc desc = ImageConv(2, 5, 12, 10, 18, 3);
  desc.dilation = {3, 1};
  desc.pad = {2, 1};
  return desc;
}

ConvDesc Depthwise(int64_t n, int64_t c, int64_t h, int64_t w, int64_t stride, int64_t pad) {
  return ImageConv(n, c, h, w, c, 3, stride, pad, c);
}

// Rows and columns differ in stride, pad and dilation.
ConvDesc DepthwiseRectangular() {
  ConvDesc desc = Depthwise(2, 21, 13, 16, 1, 1);
  desc.stride = {3, 2};
  desc.pad = {3, 2};
  desc.dilation = {2, 1};
  return desc;
}

// oneDNN computes a wrong bf16 weight gradient for this convolution.
ConvDesc ShortInput() {
  ConvDesc desc = ImageConv(1, 4, 1, 2, 9, 1);
  desc.kernel = {1, 4};
  desc.stride = {1, 3};
  desc.pad = {0, 3};
  return desc;
}

ConvDesc Line(int64_t group) {
  return {.batch = 3,
          .in_channels = 6,
          .out_channels = 8,
          .group = group,
          .in = {17},
          .kernel = {4},
          .stride = {2},
          .pad = {1},
          .dilation = {1}};
}

ConvDesc Volume(int64_t group) {
  return {.batch = 2,
          .in_channels = 4,
          .out_channels = 6,
          .group = group,
          .in = {5, 6, 7},
          .kernel = {3, 2, 3},
          .stride = {1, 2, 1},
          .pad = {1, 0, 1},
          .dilation = {1, 1, 2}};
}

const ConvCase kConvCases[] = {
    {"lenet_first", ImageConv(3, 1, 28, 28, 20, 5)},
    {"lenet_second", ImageConv(3, 20, 12, 12, 50, 5)},
    {"one_image", ImageConv(1, 20, 12, 12, 50, 5)},
    {"colour", ImageConv(2, 3, 16, 16, 32, 5, 1, 2)},
    {"colour_stride", ImageConv(2, 3, 43, 43, 24, 11, 4)},
    {"one_channel_wide", ImageConv(2, 1, 9, 33, 37, 3, 1, 1)},
    {"one_channel_stride", ImageConv(2, 1, 13, 13, 16, 3, 2, 1)},
    {"same", ImageConv(2, 32, 8, 8, 64, 3, 1, 1)},
    {"same_groups", ImageConv(2, 32, 8, 8, 64, 3, 1, 1, 2)},
    {"odd_groups", ImageConv(2, 6, 7, 9, 9, 3, 1, 1, 3)},
    {"one_by_one", ImageConv(2, 19, 6, 5, 13, 1)},
    {"one_by_one_stride", ImageConv(2, 64, 7, 7, 48, 1, 2)},
    {"one_by_one_stride_odd", ImageConv(3, 24, 9, 9, 20, 1, 2)},
    {"one_by_one_deep", ImageConv(2, 300, 7, 6, 40, 1)},
    {"one_by_one_deep_no_bias", Without(ImageConv(2, 530, 3, 5, 8, 1), false)},
    {"one_by_one_many_pixels", ImageConv(3, 24, 21, 21, 72, 1)},
    {"one_by_one_nearly_full_vectors", ImageConv(2, 60, 21, 21, 90, 1)},
    {"depthwise", ImageConv(2, 12, 9, 8, 12, 3, 1, 1, 12)},
    {"depthwise_twice", ImageConv(2, 5, 9, 8, 10, 3, 2, 1, 5)},
    {"depthwise_full_vectors", Depthwise(3, 32, 14, 14, 1, 1)},
    {"depthwise_rest_of_a_vector", Depthwise(2, 43, 9, 17, 1, 1)},
    {"depthwise_stride", Depthwise(2, 48, 15, 18, 2, 1)},
    {"depthwise_stride_without_pad", Depthwise(2, 24, 16, 15, 2, 0)},
    {"depthwise_stride_wide_pad", Depthwise(2, 16, 7, 10, 2, 2)},
    {"depthwise_few_channels", Depthwise(2, 5, 10, 8, 1, 0)},
    {"depthwise_one_pixel", Depthwise(3, 19, 1, 1, 1, 1)},
    {"depthwise_one_column", Depthwise(3, 19, 6, 1, 2, 1)},
    {"depthwise_rectangular", DepthwiseRectangular()},
    {"depthwise_without_bias", Without(Depthwise(2, 16, 8, 8, 1, 1), false)},
    {"depthwise_beyond_the_caches", Depthwise(1, 16, 450, 450, 1, 1)},
    {"depthwise_five", ImageConv(2, 16, 9, 8, 16, 5, 1, 2, 16)},
    {"dilated", ImageConv(2, 8, 13, 12, 10, 3, 1, 2, 1, 2)},
    {"dilated_stride", ImageConv(2, 8, 15, 15, 10, 3, 2, 3, 1, 3)},
    {"pad_beyond_kernel", ImageConv(2, 4, 5, 5, 6, 2, 1, 3)},
    {"whole_image", ImageConv(2, 7, 6, 6, 11, 6)},
    {"stride_leaves_a_rest", ImageConv(2, 16, 10, 11, 16, 3, 3)},
    {"rectangular", RectangularConv()},
    {"no_bias", Without(ImageConv(2, 16, 9, 9, 24, 3, 1, 1), false)},
    {"tail_with_pad_and_stride", ImageConv(3, 20, 11, 9, 50, 3, 2, 1)},
    {"tail_and_many_outputs", ImageConv(5, 24, 7, 7, 113, 3, 1, 1)},
    {"image_beyond_the_caches", ImageConv(3, 3, 90, 90, 100, 7, 2, 3)},
    {"dilated_rows", DilatedRows()},
    {"short_input", ShortInput()},
    {"line", Line(1)},
    {"line_groups", Line(2)},
    {"volume", Volume(1)},
    {"volume_groups", Volume(2)},
};

// Compares every plan of the device with the reference, which reads the same rounded numbers.
class ConvPlanTest : public testing::TestWithParam<std::tuple<ConvCase, DType>> {
 protected:
  ConvPlanTest() : desc_(std::get<0>(GetParam()).desc) {
    desc_.dtype = std::get<1>(GetParam());
    plan_ = MetaDevice().NewConv(desc_);
    reference_ = MakeReferenceConv(desc_);
    scratch_ = std::make_unique<GuardedBytes>(plan_->ScratchBytes());
    reference_scratch_ = std::make_unique<GuardedBytes>(reference_->ScratchBytes(), true);
    // bf16 keeps 8 bits and f16 keeps 11; the library rounds the weight as well.
    bound_ = BoundOf(desc_.dtype, 2e-5f, 2e-2f);
  }
  void TearDown() override { EXPECT_TRUE(scratch_->Intact()) << plan_->kernel(); }

  Values Random(const Shape& shape, uint32_t seed) const {
    return Values::Random(shape, desc_.dtype, seed);
  }
  Values Weights(const Shape& shape, uint32_t seed) const {
    return Values::Random(shape, DType::kF32, seed);
  }

  ConvDesc desc_;
  std::unique_ptr<ConvPrimitive> plan_, reference_;
  std::unique_ptr<GuardedBytes> scratch_, reference_scratch_;
  float bound_;
};

TEST_P(ConvPlanTest, ForwardMatchesTheReference) {
  const Values x = Random(desc_.InShape(), 1), weight = Weights(desc_.WeightShape(), 2);
  const Values bias = Weights({desc_.out_channels}, 3);
  const Values y = Values::Unset(desc_.OutShape(), desc_.dtype);
  const Values want = Values::Unset(desc_.OutShape(), desc_.dtype);
  const float* bias_data = desc_.bias ? bias.f32() : nullptr;
  reference_->Forward(x.Host(), weight.HostF32(), desc_.bias ? bias.HostF32() : nullptr,
                      want.Host(), reference_scratch_->span());
  for (int call = 0; call < 2; ++call) {
    plan_->Forward(x, weight.f32(), bias_data, y, scratch_->span());
    ExpectClose(y, want, bound_, plan_->kernel().c_str());
  }
}

TEST_P(ConvPlanTest, DataGradientMatchesTheReferenceAndOverwrites) {
  const Values dy = Random(desc_.OutShape(), 4), weight = Weights(desc_.WeightShape(), 5);
  const Values dx = Values::Unset(desc_.InShape(), desc_.dtype);
  const Values want = Values::Unset(desc_.InShape(), desc_.dtype);
  reference_->BackwardData(dy.Host(), weight.HostF32(), want.Host(), reference_scratch_->span());
  for (int call = 0; call < 2; ++call) {
    plan_->BackwardData(dy, weight.f32(), dx, scratch_->span());
    ExpectClose(dx, want, bound_, plan_->kernel().c_str());
  }
}

TEST_P(ConvPlanTest, WeightGradientIsAdded) {
  const Values x = Random(desc_.InShape(), 6), dy = Random(desc_.OutShape(), 7);
  const Values dweight = Weights(desc_.WeightShape(), 8), dbias = Weights({desc_.out_channels}, 9);
  const Values want = Weights(desc_.WeightShape(), 8), want_bias = Weights({desc_.out_channels}, 9);
  for (int call = 0; call < 2; ++call) {
    plan_->BackwardWeight(x, dy, dweight.f32(), dbias.f32(), scratch_->span());
    reference_->BackwardWeight(x.Host(), dy.Host(), want.HostF32(), want_bias.HostF32(),
                               reference_scratch_->span());
    ExpectClose(dweight, want, bound_, plan_->kernel().c_str());
    ExpectClose(dbias, want_bias, bound_, plan_->kernel().c_str());
  }
}

TEST_P(ConvPlanTest, WeightGradientWithoutBiasGradientAndWithAnother) {
  const Values x = Random(desc_.InShape(), 6), dy = Random(desc_.OutShape(), 7);
  const Values first = Values::Of(desc_.WeightShape(), {});
  const Values second = Values::Of(desc_.WeightShape(), {});
  const Values dbias = Values::Of({desc_.out_channels}, {});
  plan_->BackwardWeight(x, dy, first.f32(), nullptr, scratch_->span());
  plan_->BackwardWeight(x, dy, second.f32(), dbias.f32(), scratch_->span());
  EXPECT_EQ(first.ToVector(), second.ToVector());
}

TEST_P(ConvPlanTest, RepeatsBitForBit) {
  const Values x = Random(desc_.InShape(), 10), dy = Random(desc_.OutShape(), 11);
  const auto again = MetaDevice().NewConv(desc_);
  EXPECT_EQ(again->kernel(), plan_->kernel());
  const Values first = Values::Of(desc_.WeightShape(), {});
  const Values second = Values::Of(desc_.WeightShape(), {});
  plan_->BackwardWeight(x, dy, first.f32(), nullptr, scratch_->span());
  again->BackwardWeight(x, dy, second.f32(), nullptr, scratch_->span());
  EXPECT_EQ(first.ToVector(), second.ToVector());
}

INSTANTIATE_TEST_SUITE_P(Of, ConvPlanTest,
                         testing::Combine(testing::ValuesIn(kConvCases),
                                          testing::ValuesIn(StoredTypes())),
                         NameOfCase);

}  // namespace
}  // namespace trainer

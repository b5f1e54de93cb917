#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

std::string BatchNormText(const std::string& fields = "") {
  return "type: \"BatchNorm\"\nbatch_norm_param { " + fields + " }";
}

TEST(BatchNormTest, HandValues) {
  LayerRunner layer(BatchNormText("eps: 1"), {{2, 2}});
  ASSERT_EQ(layer.NumParams(), 3);
  const float root3 = std::sqrt(3.0f);  // the variance of channel 0 is 9 - 1 + eps
  layer.SetInput(0, {0, 5, 2 * std::sqrt(2.0f), 5});
  layer.Forward();
  ExpectNear(layer.Output(), {-std::sqrt(2.0f) / root3, 0, std::sqrt(2.0f) / root3, 0}, 1e-6f);
}

TEST(BatchNormTest, StoresWeightedSumsOfUnbiasedMoments) {
  LayerRunner layer(BatchNormText("moving_average_fraction: 0.5"), {{2, 1, 1, 2}});
  layer.Forward({1, 2, 3, 6});  // mean 3, variance 3.5, unbiased variance 14 / 3
  ExpectNear(layer.GetParam(0), {3}, 1e-6f);
  ExpectNear(layer.GetParam(1), {14.0f / 3}, 1e-6f);
  EXPECT_THAT(layer.GetParam(2), ElementsAre(1));
  layer.Forward({5, 5, 5, 5});
  ExpectNear(layer.GetParam(0), {6.5}, 1e-6f);
  ExpectNear(layer.GetParam(1), {7.0f / 3}, 1e-6f);
  EXPECT_THAT(layer.GetParam(2), ElementsAre(1.5));
}

TEST(BatchNormTest, ASinglePixelHasItsOwnVarianceStored) {
  LayerRunner layer(BatchNormText(), {{1, 2}});
  EXPECT_THAT(layer.Forward({4, -3}), Each(0));
  EXPECT_THAT(layer.GetParam(0), ElementsAre(4, -3));
  EXPECT_THAT(layer.GetParam(1), ElementsAre(0, 0));
}

TEST(BatchNormTest, TestingUsesTheStoredMomentsAndLeavesThem) {
  LayerRunner layer(BatchNormText("eps: 0"), {{1, 2}}, {.phase = caffe::TEST, .training = false});
  layer.SetParam(0, {4, 8});
  layer.SetParam(1, {16, 64});
  layer.SetParam(2, {4});
  EXPECT_THAT(layer.Forward({3, 10}), ElementsAre(1, 2));
  EXPECT_THAT(layer.GetParam(0), ElementsAre(4, 8));
  EXPECT_THAT(layer.GetParam(1), ElementsAre(16, 64));
  EXPECT_THAT(layer.GetParam(2), ElementsAre(4));
}

TEST(BatchNormTest, WithNothingStoredTheMomentsAreZero) {
  LayerRunner layer(BatchNormText("eps: 0.25"), {{1, 2}},
                    {.phase = caffe::TEST, .training = false});
  layer.SetParam(0, {4, 8});
  EXPECT_THAT(layer.Forward({3, 10}), ElementsAre(6, 20));
}

TEST(BatchNormTest, TestingWithoutStoredMomentsUsesTheBatchAndStoresNothing) {
  LayerRunner layer(BatchNormText("use_global_stats: false eps: 0"), {{2, 1}},
                    {.phase = caffe::TEST, .training = false});
  EXPECT_THAT(layer.Forward({3, 5}), ElementsAre(FloatEq(-1), FloatEq(1)));
  EXPECT_THAT(layer.GetParam(2), ElementsAre(0));
}

TEST(BatchNormTest, GradientMatchesDifferences) {
  for (const Shape& shape : {Shape{2, 3, 2, 3}, Shape{6, 3}, Shape{2, 3, 4}, Shape{2, 17, 2, 2}}) {
    SCOPED_TRACE(shape.ToString());
    LayerRunner layer(BatchNormText("eps: 0.1"), {shape});
    layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
    layer.ExpectGradient({.params = false});
  }
}

TEST(BatchNormTest, GradientThroughStoredMomentsMatchesDifferences) {
  LayerRunner layer(BatchNormText("use_global_stats: true"), {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetParam(0, {1, 2, 3});
  layer.SetParam(1, {4, 8, 2});
  layer.SetParam(2, {2});
  layer.ExpectGradient({.params = false});
}

TEST(BatchNormTest, GoldenValues) { ExpectGoldenFile("layers/norms/batch_norm.txt", 5e-5f); }

TEST(BatchNormTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(BatchNormText(), {{2, 3, 4, 5}});
  ExpectInPlaceEqual(BatchNormText("use_global_stats: true"), {{2, 3, 4, 5}});
}

TEST(BatchNormTest, ImagesEqualThePlainOrder) {
  const std::vector<float> values = LayerRunner::SomeValues(3 * 18 * 20, 1);
  LayerRunner image(BatchNormText(), {{3, 18, 4, 5}}), plain(BatchNormText(), {{3, 18, 20}});
  ExpectNear(image.Forward(values), plain.Forward(values), 1e-5f);
  image.Backward({LayerRunner::SomeValues(3 * 18 * 20, 2)});
  plain.Backward({LayerRunner::SomeValues(3 * 18 * 20, 2)});
  ExpectNear(image.InputGradient(), plain.InputGradient(), 1e-5f);
}

TEST(BatchNormTest, AFarMeanCostsNoAccuracy) {
  LayerRunner layer(BatchNormText("eps: 0"), {{4, 1}});
  ExpectNear(layer.Forward({4095, 4097, 4095, 4097}), {-1, 1, -1, 1}, 1e-6f);
}

TEST(BatchNormTest, TheStoredMomentsAreNotLearned) {
  LayerRunner layer(BatchNormText(), {{2, 3}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(layer.ParamAt(i).lr_mult, 0);
    EXPECT_EQ(layer.ParamAt(i).decay_mult, 0);
  }
}

TEST(BatchNormTest, RefusesARateForTheStoredMoments) {
  EXPECT_THAT(
      RefusalOf(BatchNormText() + "\nparam { lr_mult: 0 }\nparam { lr_mult: 2 }", {{2, 3}}),
      HasSubstr("net.prototxt:6:1: layer 'it' (BatchNorm): lr_mult is 2, but the statistics of a "
                "BatchNorm are not trained: set lr_mult: 0, or remove `param`"));
}

TEST(BatchNormTest, RefusesFieldsOutOfRange) {
  EXPECT_THAT(RefusalOf(BatchNormText("eps: -1"), {{2, 3}}),
              HasSubstr("net.prototxt:4:20: layer 'it' (BatchNorm): eps is -1; it must not be "
                        "negative"));
  EXPECT_THAT(RefusalOf(BatchNormText("moving_average_fraction: 1.5"), {{2, 3}}),
              HasSubstr("moving_average_fraction is 1.5; it must be within [0, 1]"));
}

TEST(BatchNormTest, RefusesAnInputWithoutChannels) {
  EXPECT_THAT(RefusalOf(BatchNormText(), {{5}}), HasSubstr("(N, C, ...)"));
}

TEST(BatchNormTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "BatchNorm")", {{4, 3, 5, 6}});
  ExpectBf16Near(R"(type: "BatchNorm" batch_norm_param { scale_bias: true })", {{4, 3, 5, 6}});
  ExpectBf16Near(R"(type: "BatchNorm")", {{16, 20}});
}

// Outputs of this size bypass the caches when they are written, in blocks of channels.
TEST(BatchNormTest, MomentsAreThoseOfEachChannelInLargeBatches) {
  for (const int64_t channels : {64, 520}) {
    const int64_t width = 3'500'000 / 70 / channels, pixels = 70 * width;
    const Shape shape = {1, channels, 70, width};
    LayerRunner layer("type: \"BatchNorm\" batch_norm_param { eps: 0 }", {shape});
    const std::vector<float> x = LayerRunner::SomeValues(shape.Count(), 1);
    const std::vector<float> y = layer.Forward(x);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i) {
        sum += x[i];
        squares += double{x[i]} * x[i];
      }
      const double mean = sum / pixels, deviation = std::sqrt(squares / pixels - mean * mean);
      for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i) {
        ASSERT_NEAR(y[i], (x[i] - mean) / deviation, 1e-5) << "channel " << c;
      }
    }
  }
}

}  // namespace
}  // namespace trainer

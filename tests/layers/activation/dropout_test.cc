#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Dropout(const std::string& ratio) {
  return "type: \"Dropout\"\ndropout_param { dropout_ratio: " + ratio + " }";
}

TEST(DropoutTest, HandValuesDropTheAskedShareAndScaleTheRest) {
  const size_t n = 40003;
  LayerRunner dropout(Dropout("0.75"), {{static_cast<int64_t>(n)}});
  const std::vector<float> y = dropout.Forward(std::vector<float>(n, 2));
  const auto dropped = static_cast<size_t>(std::count(y.begin(), y.end(), 0.0f));
  const auto kept = static_cast<size_t>(std::count(y.begin(), y.end(), 8.0f));
  EXPECT_EQ(dropped + kept, n);
  EXPECT_NEAR(static_cast<double>(dropped), 0.75 * static_cast<double>(n), 500);
}

TEST(DropoutTest, HandValuesOfTestingAreTheInput) {
  LayerRunner dropout(Dropout("0.5"), {{2, 3}}, {.phase = caffe::TEST, .training = false});
  const std::vector<float> x = LayerRunner::SomeValues(6, 1);
  EXPECT_EQ(dropout.Forward(x), x);
}

TEST(DropoutTest, HandValuesOfRatioZeroAreTheInput) {
  LayerRunner dropout(Dropout("0"), {{2, 3}});
  const std::vector<float> x = LayerRunner::SomeValues(6, 1);
  EXPECT_EQ(dropout.Forward(x), x);
}

TEST(DropoutTest, HandValuesOfImagesAreZerosOrTheScaledInput) {
  LayerRunner dropout(Dropout("0.5"), {{2, 3, 4, 5}});
  const std::vector<float> x = LayerRunner::SomeValues(120, 1, 0, 0.25f);
  const std::vector<float> y = dropout.Forward(x);
  dropout.Backward({std::vector<float>(120, 1)});
  const std::vector<float> dx = dropout.InputGradient();
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], dx[i] * x[i]) << i;
    EXPECT_TRUE(dx[i] == 0 || dx[i] == 2) << i;
  }
}

TEST(DropoutTest, EachPassDropsOthersAndAPassRepeats) {
  LayerRunner dropout(Dropout("0.5"), {{100}});
  dropout.SetInput(0, std::vector<float>(100, 1));
  dropout.Forward(7);
  const std::vector<float> seventh = dropout.Output();
  dropout.Forward(8);
  EXPECT_NE(dropout.Output(), seventh);
  dropout.Forward(7);
  EXPECT_EQ(dropout.Output(), seventh);
}

TEST(DropoutTest, AnotherSeedDropsOthers) {
  const std::vector<float> x(100, 1);
  LayerRunner one(Dropout("0.5"), {{100}}), two(Dropout("0.5"), {{100}}, {.seed = 2});
  EXPECT_NE(one.Forward(x), two.Forward(x));
  const std::string own = "type: \"Dropout\" dropout_param { random_seed: 5 }";
  LayerRunner three(own, {{100}}), four(own, {{100}}, {.seed = 2});
  EXPECT_EQ(three.Forward(x), four.Forward(x));
}

TEST(DropoutTest, GradientMatchesDifferences) {
  LayerRunner dropout(Dropout("0.4"), {{2, 3, 4, 5}});
  dropout.SetInput(0, LayerRunner::SomeValues(120, 1));
  dropout.ExpectGradient();
}

TEST(DropoutTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Dropout("0.5"), {{7, 9}}); }

TEST(DropoutTest, RefusesRatiosThatAreNoShare) {
  EXPECT_THAT(RefusalOf(Dropout("1"), {{2}}),
              HasSubstr("net.prototxt:4:17: layer 'it' (Dropout): dropout_ratio is 1; it must be "
                        "the share of values set to 0, at least 0 and below 1"));
  EXPECT_THAT(RefusalOf(Dropout("-0.5"), {{2}}), HasSubstr("dropout_ratio is -0.5"));
  EXPECT_THAT(RefusalOf(Dropout("nan"), {{2}}), HasSubstr("dropout_ratio is nan"));
}

TEST(DropoutTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Dropout")", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "Dropout")", {{2, 3, 5, 6}}, {},
                 {.phase = caffe::TEST, .training = false});
}

}  // namespace
}  // namespace trainer

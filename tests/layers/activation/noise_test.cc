#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::HasSubstr;

std::string NoiseOf(const std::string& fields) {
  return "type: \"Noise\"\nnoise_param { " + fields + " }";
}

TEST(NoiseTest, HandValuesOfGaussianNoiseHaveItsMomentsAndNoTail) {
  constexpr size_t kCount = 40001;
  LayerRunner noise(NoiseOf("kind: GAUSSIAN amount: 2"), {{kCount}});
  const std::vector<float> y = noise.Forward(std::vector<float>(kCount, 3));
  double sum = 0, squares = 0, fourth = 0;
  for (const float value : y) {
    const double z = (value - 3) / 2;
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.03);
  EXPECT_NEAR(fourth / kCount, 3, 0.2);
}

TEST(NoiseTest, HandValuesOfSaltAndPepperAreHalfZerosHalfOnes) {
  constexpr size_t kCount = 40000;
  LayerRunner noise(NoiseOf("kind: SALT_AND_PEPPER amount: 0.4"), {{kCount}});
  const std::vector<float> y = noise.Forward(std::vector<float>(kCount, 0.5f));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(y, 0.0f)), 0.2 * kCount, 300);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(y, 1.0f)), 0.2 * kCount, 300);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(y, 0.5f)), 0.6 * kCount, 400);
}

TEST(NoiseTest, HandValuesOfImagesAreMaskedAndSoAreTheirGradients) {
  LayerRunner noise(NoiseOf("kind: MASKING amount: 0.5"), {{2, 3, 4, 5}});
  const std::vector<float> x = LayerRunner::SomeValues(120, 1, 0, 0.25f);
  const std::vector<float> y = noise.Forward(x);
  noise.Backward({std::vector<float>(120, 1)});
  const std::vector<float> dx = noise.InputGradient();
  size_t masked = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], dx[i] * x[i]) << i;
    masked += dx[i] == 0 ? 1 : 0;
  }
  EXPECT_GT(masked, 40u);
  EXPECT_LT(masked, 80u);
}

TEST(NoiseTest, HandValuesOfBernoulliAreDrawnWithTheInputAsProbability) {
  constexpr size_t kCount = 30000;
  std::vector<float> x(kCount, 0.25f);
  std::fill(x.begin(), x.begin() + kCount / 3, 1.0f);
  std::fill(x.begin() + kCount / 3, x.begin() + kCount / 3 * 2, 0.0f);
  LayerRunner noise(NoiseOf("kind: BERNOULLI"), {{kCount}}, {.training = false});
  const std::vector<float> y = noise.Forward(x);
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + kCount / 3), Each(1));
  EXPECT_THAT(std::vector<float>(y.begin() + kCount / 3, y.begin() + kCount / 3 * 2), Each(0));
  EXPECT_NEAR(static_cast<double>(std::count(y.begin() + kCount / 3 * 2, y.end(), 1.0f)),
              0.25 * kCount / 3, 150);
}

TEST(NoiseTest, HandValuesOfTestingAreTheInputUnlessAskedFor) {
  const RunnerOptions testing_options{.phase = caffe::TEST, .training = false};
  LayerRunner quiet(NoiseOf("amount: 1"), {{2, 3}}, testing_options);
  const std::vector<float> x = LayerRunner::SomeValues(6, 1);
  EXPECT_EQ(quiet.Forward(x), x);
  LayerRunner noisy(NoiseOf("amount: 1 in_test: true"), {{2, 3}}, testing_options);
  EXPECT_NE(noisy.Forward(x), x);
}

TEST(NoiseTest, EachPassDrawsOthersAndAPassRepeats) {
  for (const char* kind : {"GAUSSIAN", "SALT_AND_PEPPER", "MASKING"}) {
    LayerRunner noise(NoiseOf(std::string("amount: 0.5 kind: ") + kind), {{99}});
    noise.SetInput(0, std::vector<float>(99, 0.25f));
    noise.Forward(7);
    const std::vector<float> seventh = noise.Output();
    noise.Forward(8);
    EXPECT_NE(noise.Output(), seventh) << kind;
    noise.Forward(7);
    EXPECT_EQ(noise.Output(), seventh) << kind;
  }
}

TEST(NoiseTest, GradientMatchesDifferences) {
  for (const char* kind : {"GAUSSIAN", "SALT_AND_PEPPER", "MASKING"}) {
    LayerRunner noise(NoiseOf(std::string("amount: 0.5 kind: ") + kind), {{3, 7}});
    noise.SetInput(0, LayerRunner::SomeValues(21, 1));
    noise.ExpectGradient();
  }
}

TEST(NoiseTest, InPlaceEqualsNotInPlace) {
  for (const char* kind : {"GAUSSIAN", "SALT_AND_PEPPER", "MASKING"}) {
    ExpectInPlaceEqual(NoiseOf(std::string("amount: 0.5 kind: ") + kind), {{2, 3, 4, 5}});
  }
}

TEST(NoiseTest, RefusesAmountsThatAreNoDeviationOrProbability) {
  EXPECT_THAT(RefusalOf(NoiseOf("amount: -1"), {{2}}),
              HasSubstr("amount is -1; a standard deviation must be 0 or more"));
  EXPECT_THAT(RefusalOf(NoiseOf("kind: MASKING amount: 1.5"), {{2}}),
              HasSubstr("amount is 1.5; a probability must be from 0 to 1"));
}

}  // namespace
}  // namespace trainer

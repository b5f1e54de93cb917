#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kUp = "type: \"RBM\"\nrbm_param { num_output: 2 ";
const std::string kDown = "type: \"RBM\"\nrbm_param { output: VISIBLE num_visible: 3 ";

float Logistic(double x) { return static_cast<float>(1 / (1 + std::exp(-x))); }

// Sets W (2, 3), c and b.
void SetWeights(LayerRunner& rbm) {
  rbm.SetParam(0, {1, 2, 0, -1, 0.5f, 3});
  rbm.SetParam(1, {0.5f, -1});
  rbm.SetParam(2, {0.25f, 0, -2});
}

TEST(RbmTest, HandValuesOfHiddenUnits) {
  LayerRunner rbm(kUp + "}", {{2, 3}});
  SetWeights(rbm);
  const std::vector<float> h = rbm.Forward({1, 0, 1, 0.5f, 1, 0});
  EXPECT_EQ(rbm.OutputShape(), Shape({2, 2}));
  ExpectNear(h, {Logistic(1.5), Logistic(1), Logistic(3), Logistic(-1)}, 1e-6f);
}

TEST(RbmTest, HandValuesOfVisibleUnits) {
  LayerRunner rbm(kDown + "}", {{1, 2}});
  SetWeights(rbm);
  ExpectNear(rbm.Forward({1, 0.5f}), {Logistic(0.75), Logistic(2.25), Logistic(-0.5)}, 1e-6f);
  LayerRunner gaussian(kDown + "visible: GAUSSIAN }", {{1, 2}});
  SetWeights(gaussian);
  ExpectNear(gaussian.Forward({1, 0.5f}), {0.75f, 2.25f, -0.5f}, 1e-6f);
}

// The hidden units are certain, h = (1, 0), so the reconstruction is known.
TEST(RbmTest, HandValuesOfErrorAndFreeEnergy) {
  LayerRunner rbm(kUp + "}", {{2, 3}}, {.outputs = 3, .learning_outputs = 1});
  rbm.SetParam(0, {1, 2, 0, -1, 0.5f, 3});
  rbm.SetParam(1, {60, -60});
  rbm.SetParam(2, {0.25f, 0, -2});
  rbm.Forward({1, 0, 1, 0.5f, 1, 0});
  const float up[] = {Logistic(1.25), Logistic(2), Logistic(-2)};
  float error = 0;
  const float v[] = {1, 0, 1, 0.5f, 1, 0};
  for (int i = 0; i < 6; ++i) error += (v[i] - up[i % 3]) * (v[i] - up[i % 3]) / 2;
  ExpectNear(rbm.Output(1), {error}, 1e-6f);
  // -b v is 1.75 and -0.125; the first unit's input is 61 and 62.5, the other's log(1 + e^x) is 0.
  ExpectNear(rbm.Output(2), {(1.75f - 61 - 0.125f - 62.5f) / 2}, 1e-6f);
}

TEST(RbmTest, HandValuesOfGaussianFreeEnergy) {
  LayerRunner rbm(kUp + "visible: GAUSSIAN }", {{1, 3}}, {.outputs = 3, .learning_outputs = 1});
  rbm.SetParam(1, {0, 0});
  rbm.SetParam(2, {0.5f, 0, -2});
  rbm.Forward({1.5f, 2, -2});
  ExpectNear(rbm.Output(2), {0.5f + 2 - 2 * std::log(2.0f)}, 1e-6f);
}

TEST(RbmTest, ImagesEqualFlatInputs) {
  const std::string fields =
      "type: \"RBM\"\nrbm_param { num_output: 3 weight_filler { type: "
      "\"xavier\" } }";
  LayerRunner image(fields, {{2, 3, 2, 2}}), flat(fields, {{2, 12}});
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(i % 9) / 8);
  EXPECT_EQ(image.Forward(x), flat.Forward(x));
  const std::vector<float> dy = LayerRunner::SomeValues(6, 3);
  image.Backward({dy});
  flat.Backward({dy});
  EXPECT_EQ(image.ParamGradient(0), flat.ParamGradient(0));
}

TEST(RbmTest, SamplesAreZerosAndOnesWithTheMeansAsProbabilities) {
  constexpr int kRows = 20000;
  LayerRunner rbm("type: \"RBM\"\nrbm_param { num_output: 2 sample: true }", {{kRows, 1}});
  rbm.SetParam(1, {0, static_cast<float>(std::log(3.0))});
  const std::vector<float> h = rbm.Forward(std::vector<float>(kRows, 0));
  double sums[2] = {};
  for (size_t i = 0; i < h.size(); ++i) {
    ASSERT_TRUE(h[i] == 0 || h[i] == 1);
    sums[i % 2] += h[i];
  }
  EXPECT_NEAR(sums[0] / kRows, 0.5, 0.01);
  EXPECT_NEAR(sums[1] / kRows, 0.75, 0.01);
}

TEST(RbmTest, GradientMatchesDifferences) {
  for (const std::string& fields : {kUp + "}", kUp + "visible: GAUSSIAN }"}) {
    LayerRunner rbm(fields, {{4, 3}});
    SetWeights(rbm);
    rbm.SetInput(
        0, {0.875f, 0.5f, 0.25f, 0.125f, 0.625f, 0.5f, 0.75f, 0.25f, 0.5f, 0.5f, 0.25f, 0.75f});
    rbm.ExpectGradient();
  }
}

TEST(RbmTest, GradientOfVisibleUnitsMatchesDifferences) {
  for (const std::string& fields : {kDown + "}", kDown + "visible: GAUSSIAN }"}) {
    LayerRunner rbm(fields, {{3, 2}});
    SetWeights(rbm);
    rbm.SetInput(0, LayerRunner::SomeValues(6, 1));
    rbm.ExpectGradient();
  }
}

TEST(RbmTest, GradientOfAnImageMatchesDifferences) {
  LayerRunner rbm(kUp + "weight_filler { type: \"xavier\" } }", {{2, 2, 2, 2}});
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i * i % 7 + 1) / 8);
  rbm.SetInput(0, x);
  rbm.ExpectGradient();
}

TEST(RbmTest, GradientOfASampleIsThatOfItsMean) {
  LayerRunner means(kUp + "}", {{2, 3}}), drawn(kUp + "sample: true }", {{2, 3}});
  for (LayerRunner* rbm : {&means, &drawn}) {
    SetWeights(*rbm);
    rbm->Forward({1, 0, 1, 0.5f, 1, 0});
    rbm->Backward({{1, -1, 2, 0.5f}});
  }
  EXPECT_EQ(means.ParamGradient(0), drawn.ParamGradient(0));
  EXPECT_EQ(means.InputGradient(), drawn.InputGradient());
}

TEST(RbmTest, InPlaceEqualsNotInPlace) {
  const std::vector<float> x(9, 0.5f);
  ExpectInPlaceEqual(
      "type: \"RBM\"\nrbm_param { num_output: 3 weight_filler { type: \"xavier\" } }", {{3, 3}},
      {x});
}

TEST(RbmTest, RefusesMissingNumbersOfUnits) {
  EXPECT_THAT(RefusalOf("type: \"RBM\"", {{2, 3}}),
              HasSubstr("num_output must be at least 1: it is the number of hidden units"));
  EXPECT_THAT(RefusalOf("type: \"RBM\"\nrbm_param { output: VISIBLE }", {{2, 3}}),
              HasSubstr("num_visible must be at least 1: it is the number of visible units"));
  EXPECT_THAT(RefusalOf(kDown + "num_output: 5 }", {{1, 2}}),
              HasSubstr("num_output is 5, but the bottom has 2 hidden units per record"));
}

TEST(RbmTest, RefusesFurtherTopsOfVisibleUnits) {
  EXPECT_THAT(RefusalOf(kDown + "}", {{1, 2}}, {.outputs = 2}),
              HasSubstr("with output VISIBLE the only top"));
}

TEST(RbmTest, AVisibleUnitOutsideZeroToOneIsBadData) {
  LayerRunner rbm(kUp + "}", {{2, 3}});
  const auto [code, text] = ErrorOf([&] { rbm.Forward({1, 0, 1, 0.5f, 255, 0}); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text,
              HasSubstr("net.prototxt:2:1: layer 'it' (RBM): visible unit 255 of item 1 of "
                        "the batch is not a probability: BERNOULLI units must be from 0 to 1"));
  LayerRunner gaussian(kUp + "visible: GAUSSIAN }", {{2, 3}});
  gaussian.Forward({1, 0, 1, 0.5f, 255, 0});
}

}  // namespace
}  // namespace trainer

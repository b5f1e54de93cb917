#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string LossSmoothL1Loss(const std::string& fields = "") {
  return "type: \"SmoothL1Loss\"\nsmooth_l1_loss_param { " + fields + " }";
}

TEST(SmoothL1LossTest, HandValuesOfTheSquareAndTheStraightPart) {
  LayerRunner layer(LossSmoothL1Loss(), {{2, 2}, {2, 2}});
  layer.SetInput(0, {0.5, 3, 1, 1});
  layer.SetInput(1, {0, 0, 1, 3});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre((0.125f + 2.5f + 0 + 1.5f) / 2));
  layer.Backward({{4}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(1, 2, 0, -2));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(-1, -2, 0, 2));
}

TEST(SmoothL1LossTest, HandValuesOfWeightsInsideAndOutside) {
  LayerRunner layer(LossSmoothL1Loss("sigma: 2"), {{1, 2}, {1, 2}, {1, 2}, {1, 2}});
  layer.SetInput(0, {1, 1});
  layer.SetInput(1, {0, 0});
  layer.SetInput(2, {0.125, 2});  // scale the differences 1 to 1 / 8 and 2
  layer.SetInput(3, {16, 8});     // weigh the losses (2 / 8)^2 / 2 and 2 - 1 / 8
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(0.5f + 15));
  layer.Backward({{1}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(1, 16));
}

TEST(SmoothL1LossTest, HandValuesOfInsideWeightsAlone) {
  LayerRunner layer(LossSmoothL1Loss(), {{1, 2}, {1, 2}, {1, 2}});
  layer.SetInput(0, {1, 5});
  layer.SetInput(1, {0, 0});
  layer.SetInput(2, {0.5, 0});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(0.125f));
}

TEST(SmoothL1LossTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "sigma: 0.5", "sigma: 3"}) {
    SCOPED_TRACE(fields);
    const Shape shape = {2, 3, 2, 2};
    LayerRunner layer(LossSmoothL1Loss(fields), {shape, shape, shape, shape});
    for (int i = 0; i < 4; ++i) {
      layer.SetInput(i, LayerRunner::SomeValues(24, static_cast<uint32_t>(i) + 1));
    }
    layer.ExpectGradient({.inputs = {0, 1}});
  }
}

TEST(SmoothL1LossTest, GoldenValues) { ExpectGoldenFile("layers/losses/smooth_l1_loss.txt"); }

TEST(SmoothL1LossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(LossSmoothL1Loss(), {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(SmoothL1LossTest, RefusesBadInputsAndFields) {
  EXPECT_THAT(RefusalOf(LossSmoothL1Loss(), {{2, 3}, {2, 3}, {2, 4}}),
              HasSubstr("bottom 'x2' has shape (2, 4), but bottom 'x0' has (2, 3); they must be"));
  for (const char* sigma : {"0", "-1", "1e30", "1e-30"}) {
    EXPECT_THAT(RefusalOf(LossSmoothL1Loss(std::string("sigma: ") + sigma), {{2, 3}, {2, 3}}),
                HasSubstr("; it must be above 0, and its square must be in the range of float"))
        << sigma;
  }
}

TEST(SmoothL1LossTest, AxesOfLengthOneAtTheEndDoNotMatter) {
  const std::vector<float> scores = {0.5f, -1, 2}, targets = {1, 0, 0.25f};
  std::vector<float> losses, gradients;
  for (const auto& [score, target] : std::vector<std::pair<Shape, Shape>>{
           {{3}, {3}}, {{3, 1}, {3}}, {{3}, {3, 1, 1, 1}}, {{3, 1, 1, 1}, {3, 1}}}) {
    LayerRunner layer(R"(type: "SmoothL1Loss")", {score, target});
    layer.SetInput(0, scores);
    layer.SetInput(1, targets);
    layer.Forward();
    layer.Backward({{1}});
    if (losses.empty()) losses = layer.Output();
    if (gradients.empty()) gradients = layer.InputGradient(0);
    EXPECT_EQ(layer.Output(), losses);
    EXPECT_EQ(layer.InputGradient(0), gradients);
  }
  EXPECT_THAT(RefusalOf(R"(type: "SmoothL1Loss")", {{2, 3, 2, 1}, {2, 3, 2}}),
              HasSubstr("bottom 'x1' has shape (2, 3, 2), but bottom 'x0' has (2, 3, 2, 1)"));
}

}  // namespace
}  // namespace trainer

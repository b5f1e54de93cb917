#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SigmoidCrossEntropyLossTest, HandValues) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss")", {{1, 2}, {1, 2}});
  layer.SetInput(0, {0, 1.0986123f});
  layer.SetInput(1, {1, 0.5});
  layer.Forward();
  ExpectNear(layer.Output(), {0.6931472f + 0.8369882f}, 1e-6f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {-1, 0.5}, 1e-6f);
}

TEST(SigmoidCrossEntropyLossTest, HandValuesOfGreatScoresStayFinite) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss")", {{1, 2}, {1, 2}});
  layer.SetInput(1, {0, 1});
  ExpectNear(layer.Forward({1000, -1000}), {2000}, 1e-6f);
}

TEST(SigmoidCrossEntropyLossTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { ignore_label: 9 })",
                    {{2, 3, 2, 1}, {2, 3, 2, 1}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 1, 0.5, 9, 9.5, 1, 1, 0, 0, 0.25, 9, 1});
  layer.ExpectGradient();
}

// The loss is -3 t log s(x) - (1 - t) log(1 - s(x)), with s(0) = 1/2 and s(log 3) = 3/4.
TEST(SigmoidCrossEntropyLossTest, HandValuesOfAPositiveWeight) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { pos_weight: 3 })",
                    {{1, 3}, {1, 3}});
  layer.SetInput(0, {0, 1.0986123f, 1.0986123f});
  layer.SetInput(1, {1, 0, 0.5});
  layer.Forward();
  ExpectNear(layer.Output(), {3 * 0.6931472f + 1.3862944f + 1.5f * 0.2876821f + 0.6931472f}, 1e-5f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {-3, 1.5, 2 * (0.375f - 1.5f * 0.25f)}, 1e-6f);
}

// All scores are 0, so each target of 1 has the loss p log 2 and the gradient -p / 2.
TEST(SigmoidCrossEntropyLossTest, HandValuesOfOneWeightForEachChannel) {
  for (const Shape& shape : {Shape{1, 3}, Shape{1, 3, 2}, Shape{1, 3, 2, 2}}) {
    const int64_t inner = shape.Count() / 3;
    LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { pos_weight: 2 pos_weight: 4
                         pos_weight: 6 })",
                      {shape, shape});
    layer.SetInput(1, std::vector<float>(static_cast<size_t>(shape.Count()), 1.0f));
    const auto n = static_cast<float>(inner);
    ExpectNear(layer.Forward(std::vector<float>(static_cast<size_t>(shape.Count()))),
               {12 * n * 0.6931472f}, 1e-5f);
    layer.Backward({{1}});
    std::vector<float> gradient;
    for (int64_t i = 0; i < shape.Count(); ++i) {
      gradient.push_back(-1 - static_cast<float>(i / inner));
    }
    ExpectNear(layer.InputGradient(), gradient, 1e-6f);
  }
}

TEST(SigmoidCrossEntropyLossTest, HandValuesOfGreatScoresWithAPositiveWeightStayFinite) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { pos_weight: 2 })",
                    {{1, 4}, {1, 4}});
  layer.SetInput(1, {0, 1, 1, 0});
  ExpectNear(layer.Forward({1000, -1000, 1000, -1000}), {1000 + 2000}, 1e-6f);
}

TEST(SigmoidCrossEntropyLossTest, APositiveWeightOf1ChangesNothing) {
  std::vector<float> loss, gradient;
  for (const char* fields : {"", "pos_weight: 1", "pos_weight: 1 pos_weight: 1 pos_weight: 1"}) {
    LayerRunner layer(Join("type: \"SigmoidCrossEntropyLoss\" loss_param { ", fields, " }"),
                      {{2, 3, 2, 2}, {2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    std::vector<float> targets(24);
    for (size_t i = 0; i < 24; ++i) targets[i] = static_cast<float>(i % 5) / 4;
    layer.SetInput(1, targets);
    layer.Forward();
    layer.Backward({{1}});
    if (loss.empty()) {
      loss = layer.Output();
      gradient = layer.InputGradient();
    }
    ExpectNear(layer.Output(), loss, 1e-6f);
    ExpectNear(layer.InputGradient(), gradient, 1e-6f);
  }
}

TEST(SigmoidCrossEntropyLossTest, GradientMatchesDifferencesWithPositiveWeights) {
  LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss" loss_param { ignore_label: 9
                       pos_weight: 0.5 pos_weight: 4 pos_weight: 0 normalization: VALID })",
                    {{2, 3, 2, 1}, {2, 3, 2, 1}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 1, 0.5, 9, 9.5, 1, 1, 0, 0, 0.25, 9, 1});
  layer.ExpectGradient();
}

TEST(SigmoidCrossEntropyLossTest, RefusesWrongPositiveWeights) {
  EXPECT_THAT(
      RefusalOf("type: \"SigmoidCrossEntropyLoss\"\nloss_param { pos_weight: 1 pos_weight: "
                "-2 }",
                {{2, 2}, {2, 2}}),
      HasSubstr("net.prototxt:4:28: layer 'it' (SigmoidCrossEntropyLoss): pos_weight is -2; "
                "it must be a finite factor, 0 or more"));
  EXPECT_THAT(
      RefusalOf("type: \"SigmoidCrossEntropyLoss\" loss_param { pos_weight: 1 pos_weight: 2 "
                "}",
                {{2, 3}, {2, 3}}),
      HasSubstr("pos_weight is given 2 times for 3 channels; give one for each channel "
                "(axis 1), or one for all"));
  EXPECT_THAT(RefusalOf("type: \"SoftmaxWithLoss\" loss_param { pos_weight: 1 }", {{2, 3}, {2}}),
              HasSubstr("only SigmoidCrossEntropyLoss supports pos_weight; class_weight is the "
                        "weight of a class"));
}

TEST(SigmoidCrossEntropyLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/sigmoid_cross_entropy_loss.txt");
  ExpectGoldenFile("layers/losses/sigmoid_cross_entropy_loss_weighted.txt");
}

TEST(SigmoidCrossEntropyLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(SigmoidCrossEntropyLossTest, RefusesTargetsOfAnotherShape) {
  EXPECT_THAT(RefusalOf(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3}, {2}}),
              HasSubstr("bottom 'x1' has shape (2), but bottom 'x0' has (2, 3); they must be"));
}

TEST(SigmoidCrossEntropyLossTest, AxesOfLengthOneAtTheEndDoNotMatter) {
  const std::vector<float> scores = {0.5f, -1, 2}, targets = {1, 0, 0.25f};
  std::vector<float> losses, gradients;
  for (const auto& [score, target] : std::vector<std::pair<Shape, Shape>>{
           {{3}, {3}}, {{3, 1}, {3}}, {{3}, {3, 1, 1, 1}}, {{3, 1, 1, 1}, {3, 1}}}) {
    LayerRunner layer(R"(type: "SigmoidCrossEntropyLoss")", {score, target});
    layer.SetInput(0, scores);
    layer.SetInput(1, targets);
    layer.Forward();
    layer.Backward({{1}});
    if (losses.empty()) losses = layer.Output();
    if (gradients.empty()) gradients = layer.InputGradient(0);
    EXPECT_EQ(layer.Output(), losses);
    EXPECT_EQ(layer.InputGradient(0), gradients);
  }
  EXPECT_THAT(RefusalOf(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3, 2, 1}, {2, 3, 2}}),
              HasSubstr("bottom 'x1' has shape (2, 3, 2), but bottom 'x0' has (2, 3, 2, 1)"));
}

}  // namespace
}  // namespace trainer

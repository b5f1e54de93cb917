#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Rnn(const std::string& fields) {
  return "type: \"RNN\"\nrecurrent_param { " + fields + " }";
}

TEST(RnnTest, GoldenValues) { ExpectGoldenFile("layers/products/rnn.txt"); }

TEST(RnnTest, HandValuesOfTwoSteps) {
  LayerRunner layer(Rnn("num_output: 1"), {{2, 1, 1}, {2, 1}});
  layer.SetInput(1, {0, 1});
  const std::vector<float> params = {2, 0.5f, -1, 3, 0.25f};
  for (int i = 0; i < 5; ++i) layer.SetParam(i, {params[static_cast<size_t>(i)]});
  const std::vector<float> y = layer.Forward({0.5, 1});
  const double h1 = std::tanh(1.5), h2 = std::tanh(2.5 - h1);
  ExpectNear(
      y,
      {static_cast<float>(std::tanh(3 * h1 + 0.25)), static_cast<float>(std::tanh(3 * h2 + 0.25))},
      1e-6f);
}

TEST(RnnTest, GradientMatchesDifferences) {
  const std::vector<Shape> inputs = {{3, 2, 2}, {3, 2}, {2, 2}, {1, 2, 3}};
  for (const int output : {0, 1}) {
    LayerRunner layer(Rnn("num_output: 3 expose_hidden: true"), inputs, {.outputs = 2});
    for (size_t i = 0; i < inputs.size(); ++i) {
      layer.SetInput(static_cast<int>(i),
                     LayerRunner::SomeValues(inputs[i].Count(), static_cast<uint32_t>(i) + 1));
    }
    layer.SetInput(1, {1, 0, 1, 1, 0, 1});
    for (int i = 0; i < layer.NumParams(); ++i) {
      layer.SetParam(
          i, LayerRunner::SomeValues(layer.ParamAt(i).count(), static_cast<uint32_t>(i) + 11));
    }
    layer.ExpectGradient({.inputs = {0, 2, 3}, .output = output});
  }
}

TEST(RnnTest, CarriesTheStateFromBatchToBatch) {
  const std::vector<float> x = LayerRunner::SomeValues(12, 5);
  auto make = [&](int64_t steps) {
    auto layer = std::make_unique<LayerRunner>(Rnn("num_output: 2"),
                                               std::vector<Shape>{{steps, 1, 3}, {steps, 1}});
    for (int i = 0; i < layer->NumParams(); ++i) {
      layer->SetParam(
          i, LayerRunner::SomeValues(layer->ParamAt(i).count(), static_cast<uint32_t>(i) + 11));
    }
    layer->SetInput(1, std::vector<float>(static_cast<size_t>(steps), 1.0f));
    return layer;
  };
  const auto whole = make(4), parts = make(2);
  const std::vector<float> y = whole->Forward(x);
  std::vector<float> joined = parts->Forward({x.begin(), x.begin() + 6});
  const std::vector<float> second = parts->Forward({x.begin() + 6, x.end()});
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(joined, y);
}

TEST(RnnTest, ImagesEqualTheirNumbersInPlainOrder) {
  std::vector<std::vector<float>> y, dx;
  for (const Shape& shape : {Shape{2, 3, 2, 2}, Shape{2, 3, 4}}) {
    LayerRunner layer(Rnn("num_output: 2"), {shape, {2, 3}});
    layer.SetInput(1, {0, 0, 0, 1, 1, 1});
    layer.SetParam(0, LayerRunner::SomeValues(8, 1));
    y.push_back(layer.Forward(LayerRunner::SomeValues(24, 3)));
    layer.Backward({LayerRunner::SomeValues(12, 4)});
    dx.push_back(layer.InputGradient());
  }
  EXPECT_EQ(y[0], y[1]);
  EXPECT_EQ(dx[0], dx[1]);
}

TEST(RnnTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Rnn("num_output: 4"), {{2, 3, 4}, {2, 3}}, {{}, {0, 0, 0, 1, 1, 1}});
}

TEST(RnnTest, RefusesOtherNumbersOfBottomsAndTops) {
  EXPECT_THAT(
      RefusalOf(Rnn("num_output: 2 expose_hidden: true"), {{4, 3, 2}, {4, 3}}, {.outputs = 2}),
      HasSubstr("has 2 bottoms; with expose_hidden it needs x, cont, optionally a static input, "
                "then h before the first step"));
  EXPECT_THAT(RefusalOf(Rnn("num_output: 2 expose_hidden: true"), {{4, 3, 2}, {4, 3}, {1, 3, 2}}),
              HasSubstr("has 1 top; with expose_hidden the tops are the output, then h after the "
                        "last step"));
}

}  // namespace
}  // namespace trainer

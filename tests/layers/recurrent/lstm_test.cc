#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Lstm(const std::string& fields) {
  return "type: \"LSTM\"\nrecurrent_param { " + fields + " }";
}

TEST(LstmTest, GoldenValues) { ExpectGoldenFile("layers/products/lstm.txt"); }

TEST(LstmTest, HandValuesOfTwoSteps) {
  LayerRunner layer(Lstm("num_output: 1"), {{2, 1, 1}, {2, 1}});
  layer.SetInput(1, {0, 1});
  layer.SetParam(0, {1, 2, 3, 4});
  layer.SetParam(1, {0.5, 0.5, 0.5, 0.5});
  layer.SetParam(2, {1, 1, 1, 1});
  const std::vector<float> y = layer.Forward({1, -1});
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double c1 = logistic(1.5) * std::tanh(4.5), h1 = logistic(3.5) * std::tanh(c1);
  const double c2 = logistic(-1.5 + h1) * c1 + logistic(-0.5 + h1) * std::tanh(-3.5 + h1);
  ExpectNear(y, {static_cast<float>(h1), static_cast<float>(logistic(-2.5 + h1) * std::tanh(c2))},
             1e-6f);
}

// Sets random values. Sequences start at the first step, so no state is carried over.
void Fill(LayerRunner& layer, const std::vector<Shape>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    layer.SetInput(static_cast<int>(i),
                   LayerRunner::SomeValues(inputs[i].Count(), static_cast<uint32_t>(i) + 1));
  }
  layer.SetInput(1, {0, 0, 1, 1, 1, 0});
  for (int i = 0; i < layer.NumParams(); ++i) {
    layer.SetParam(
        i, LayerRunner::SomeValues(layer.ParamAt(i).count(), static_cast<uint32_t>(i) + 11));
  }
}

TEST(LstmTest, GradientMatchesDifferences) {
  const std::vector<Shape> inputs = {{3, 2, 2}, {3, 2}, {2, 3}};
  LayerRunner layer(Lstm("num_output: 2"), inputs);
  Fill(layer, inputs);
  layer.ExpectGradient({.inputs = {0, 2}});
}

TEST(LstmTest, GradientOfExposedStatesMatchesDifferences) {
  const std::vector<Shape> inputs = {{3, 2, 2}, {3, 2}, {1, 2, 3}, {1, 2, 3}};
  for (const int output : {0, 1, 2}) {
    LayerRunner layer(Lstm("num_output: 3 expose_hidden: true"), inputs, {.outputs = 3});
    Fill(layer, inputs);
    layer.SetInput(1, {1, 0, 1, 1, 0, 1});
    layer.ExpectGradient({.inputs = {0, 2, 3}, .output = output});
  }
}

TEST(LstmTest, ImagesEqualTheirNumbersInPlainOrder) {
  LayerRunner images(Lstm("num_output: 2"), {{2, 3, 2, 2}, {2, 3}});
  LayerRunner rows(Lstm("num_output: 2"), {{2, 3, 4}, {2, 3}});
  std::vector<std::vector<float>> y, dx, dw;
  for (LayerRunner* layer : {&images, &rows}) {
    layer->SetInput(1, {0, 0, 0, 1, 1, 1});
    layer->SetParam(0, LayerRunner::SomeValues(32, 1));
    layer->SetParam(2, LayerRunner::SomeValues(16, 2));
    y.push_back(layer->Forward(LayerRunner::SomeValues(24, 3)));
    layer->Backward({LayerRunner::SomeValues(12, 4)});
    dx.push_back(layer->InputGradient());
    dw.push_back(layer->ParamGradient(0));
  }
  EXPECT_EQ(y[0], y[1]);
  EXPECT_EQ(dx[0], dx[1]);
  EXPECT_EQ(dw[0], dw[1]);
}

TEST(LstmTest, CarriesTheStateFromBatchToBatchUntilASequenceStarts) {
  const std::vector<float> x = LayerRunner::SomeValues(12, 5);
  const std::vector<float> weight = LayerRunner::SomeValues(24, 6),
                           hidden = LayerRunner::SomeValues(16, 7);
  auto make = [&](int64_t steps) {
    auto layer = std::make_unique<LayerRunner>(Lstm("num_output: 2"),
                                               std::vector<Shape>{{steps, 1, 3}, {steps, 1}});
    layer->SetParam(0, weight);
    layer->SetParam(2, hidden);
    return layer;
  };
  const auto whole = make(4), parts = make(2);
  whole->SetInput(1, {1, 1, 1, 1});
  parts->SetInput(1, {1, 1});
  const std::vector<float> y = whole->Forward(x);
  std::vector<float> joined = parts->Forward({x.begin(), x.begin() + 6});
  const std::vector<float> second = parts->Forward({x.begin() + 6, x.end()});
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(joined, y);
  // The previous state is kept, but the start of a sequence ignores it.
  EXPECT_NE(parts->Forward({x.begin(), x.begin() + 6}),
            std::vector<float>(y.begin(), y.begin() + 4));
  parts->SetInput(1, {0, 1});
  EXPECT_EQ(parts->Forward({x.begin(), x.begin() + 6}),
            std::vector<float>(y.begin(), y.begin() + 4));
}

TEST(LstmTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Lstm("num_output: 4"), {{2, 3, 4}, {2, 3}}, {{}, {0, 0, 0, 1, 1, 1}});
}

TEST(LstmTest, RefusesOtherShapes) {
  const std::string plain = Lstm("num_output: 2");
  EXPECT_THAT(
      RefusalOf(plain, {{4, 3}, {4, 3}}),
      HasSubstr("bottom 'x0' has shape (4, 3), but this layer needs (T, N, ...) of at least 3"));
  EXPECT_THAT(RefusalOf(plain, {{4, 3, 2}, {3, 4}}),
              HasSubstr("bottom 'x1' has shape (3, 4), but it must have (4, 3): it says for each "
                        "step and sequence whether the sequence"));
  EXPECT_THAT(
      RefusalOf(plain, {{4, 3, 2}, {4, 3}, {4, 5}}),
      HasSubstr("bottom 'x2' has shape (4, 5), but it must have (3, 5): it needs one item per"));
  EXPECT_THAT(RefusalOf(plain, {{4, 3, 2}, {4, 3}, {3}}),
              HasSubstr("bottom 'x2' has shape (3), but this layer needs (N, ...) of at least 2"));
  EXPECT_THAT(RefusalOf(Lstm("num_output: 2 expose_hidden: true"),
                        {{4, 3, 2}, {4, 3}, {1, 3, 2}, {3, 2}}, {.outputs = 3}),
              HasSubstr("bottom 'x3' has shape (3, 2), but it must have (1, 3, 2): it is a state "
                        "before the first"));
}

TEST(LstmTest, RefusesOtherNumbersOfBottomsAndTops) {
  const std::vector<Shape> two = {{4, 3, 2}, {4, 3}};
  EXPECT_THAT(RefusalOf(Lstm("num_output: 2 expose_hidden: true"), two, {.outputs = 3}),
              HasSubstr("has 2 bottoms; with expose_hidden it needs x, cont, optionally a static "
                        "input, then h and c before the first step"));
  EXPECT_THAT(RefusalOf(Lstm("num_output: 2"), {{4, 3, 2}, {4, 3}, {3, 1}, {3, 1}}),
              HasSubstr("has 4 bottoms; it needs x, cont and optionally a static input"));
  EXPECT_THAT(RefusalOf(Lstm("num_output: 2"), two, {.outputs = 2}),
              HasSubstr("has 2 tops; without expose_hidden the only top is the output"));
}

TEST(LstmTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Lstm(""), {{4, 3, 2}, {4, 3}}),
              HasSubstr("num_output is not given; it is the size of the state"));
  EXPECT_THAT(
      RefusalOf(Lstm("num_output: 0"), {{4, 3, 2}, {4, 3}}),
      HasSubstr("net.prototxt:4:19: layer 'it' (LSTM): num_output is 0; it must be at least "
                "1 and below 2^31"));
  EXPECT_THAT(RefusalOf(Lstm("num_output: 2") + " propagate_down: true propagate_down: true",
                        {{4, 3, 2}, {4, 3}}),
              HasSubstr("bottom 'x1' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char kFilter[] = "type: \"Filter\"";

TEST(FilterTest, HandValuesOfRowsAndTheirGradients) {
  LayerRunner layer(kFilter, {{4, 2}, {4}, {4, 1}}, {.outputs = 2});
  layer.SetInput(1, {10, 20, 30, 40});
  layer.SetInput(2, {1, 0, 0, -0.5});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(1, 2, 7, 8));
  EXPECT_EQ(layer.OutputShape(), Shape({2, 2}));
  EXPECT_THAT(layer.Output(1), ElementsAre(10, 40));
  layer.Backward({{1, 2, 3, 4}, {5, 6}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(1, 2, 0, 0, 0, 0, 3, 4));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(5, 0, 0, 6));
}

TEST(FilterTest, TheNumberOfRowsChangesFromPassToPass) {
  LayerRunner layer(kFilter, {{3, 1}, {3}});
  for (const std::vector<float>& selector :
       std::vector<std::vector<float>>{{1, 1, 1}, {0, 1, 0}, {1, 0, 1}, {0, 0, 0}, {0, 0, 1}}) {
    layer.SetInput(1, selector);
    std::vector<float> wanted, gradient(3, 0.0f), dy;
    const std::vector<float> x = {5, 6, 7};
    for (size_t i = 0; i < 3; ++i) {
      if (selector[i] == 0) continue;
      wanted.push_back(x[i]);
      dy.push_back(x[i] + 1);
      gradient[i] = x[i] + 1;
    }
    layer.Forward(x);
    if (!wanted.empty()) {
      EXPECT_EQ(layer.Output(), wanted);
    }
    layer.Backward({dy});
    EXPECT_EQ(layer.InputGradient(), gradient);
  }
}

TEST(FilterTest, HandValuesOfImagesMoveWhole) {
  LayerRunner layer(kFilter, {{3, 2, 2, 3}, {3, 1, 1, 1}});
  const std::vector<float> x = LayerRunner::SomeValues(36, 1);
  layer.SetInput(1, {0, 1, 1});
  EXPECT_EQ(layer.Forward(x), std::vector<float>(x.begin() + 12, x.end()));
  EXPECT_EQ(layer.OutputShape(), Shape({2, 2, 2, 3}));
}

TEST(FilterTest, GradientMatchesDifferences) {
  LayerRunner layer(kFilter, {{4, 3}, {4}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 1, 0, 1});
  layer.ExpectGradient();
}

TEST(FilterTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(kFilter, {{2, 3, 4, 5}, {2}}, {{}, {1, 1}});
}

TEST(FilterTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(RefusalOf(kFilter, {{4, 2}, {4, 2}}),
              HasSubstr("bottom 'x1' has shape (4, 2); the last bottom must be a selector (N, 1, "
                        "...) with one f32 number per item"));
  EXPECT_THAT(RefusalOf(kFilter, {{5, 2}, {4}}),
              HasSubstr("bottom 'x0' has shape (5, 2), but the selector 'x1' has 4"));
  EXPECT_THAT(RefusalOf(kFilter, {{4, 2}, {4, 2}, {4}}),
              HasSubstr("has 3 bottoms and 1 tops; give one top per bottom, except the last "
                        "bottom, which selects the items"));
  EXPECT_THAT(
      RefusalOf(std::string(kFilter) + " propagate_down: true propagate_down: true", {{4, 2}, {4}}),
      HasSubstr("bottom 'x1' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer

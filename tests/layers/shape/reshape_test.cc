#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Reshape(const std::string& shape, const std::string& fields = "") {
  return "type: \"Reshape\"\nreshape_param { shape { " + shape + " } " + fields + " }";
}

TEST(ReshapeTest, HandValuesKeepTheRowMajorOrder) {
  const std::tuple<std::string, Shape, Shape> cases[] = {
      {Reshape("dim: 0 dim: -1"), {2, 3, 4, 5}, {2, 60}},
      {Reshape("dim: 0 dim: 0 dim: 20"), {2, 3, 4, 5}, {2, 3, 20}},
      {Reshape("dim: 2 dim: 5 dim: 4 dim: 3"), {2, 3, 4, 5}, {2, 5, 4, 3}},
      {Reshape("dim: 2 dim: -1 dim: 4 dim: 3"), {2, 60}, {2, 5, 4, 3}},
      {Reshape("dim: 2 dim: 2", "axis: 2 num_axes: 1"), {2, 3, 4, 5}, {2, 3, 2, 2, 5}},
      {Reshape("dim: 1 dim: 1", "axis: -1"), {2, 3}, {2, 3, 1, 1}},
      {Reshape("dim: 1", "num_axes: 0"), {2, 3, 4}, {1, 2, 3, 4}},
      {Reshape("dim: -1"), {2, 3, 4, 5}, {120}}};
  for (const auto& [text, in, out] : cases) {
    SCOPED_TRACE(text);
    LayerRunner layer(text, {in});
    const std::vector<float> x = LayerRunner::SomeValues(in.Count(), 1);
    EXPECT_EQ(layer.Forward(x), x);
    EXPECT_EQ(layer.OutputShape(), out);
    const std::vector<float> dy = LayerRunner::SomeValues(in.Count(), 2);
    layer.Backward({dy});
    EXPECT_EQ(layer.InputGradient(), dy);
  }
}

TEST(ReshapeTest, GradientMatchesDifferences) {
  LayerRunner layer(Reshape("dim: 2 dim: 2 dim: 3 dim: 2"), {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(ReshapeTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Reshape("dim: 0 dim: -1"), {{2, 3, 4, 5}});
}

TEST(ReshapeTest, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(RefusalOf(Reshape("dim: 5"), {{2, 3}}),
              HasSubstr("layer 'it' (Reshape): the new shape has 5 values, but the axes that it "
                        "replaces in (2, 3)"));
  EXPECT_THAT(
      RefusalOf(Reshape("dim: 4 dim: -1"), {{2, 3}}),
      HasSubstr(
          "the new shape has a multiple of 4 values, but the axes that it replaces in (2, 3)"));
  EXPECT_THAT(RefusalOf(Reshape("dim: -1 dim: -1"), {{2, 3}}),
              HasSubstr("-1 (inferred) is given more than once; give it once only"));
  EXPECT_THAT(RefusalOf(Reshape("dim: -2"), {{2, 3}}),
              HasSubstr("dim 0 is -2; write a length, 0 or -1"));
  EXPECT_THAT(RefusalOf(Reshape("dim: 2 dim: 3 dim: 0"), {{2, 3}}),
              HasSubstr("dim 2 is 0, which copies axis 2, but the input (2, 3) has 2 axes"));
}

TEST(ReshapeTest, RefusesBadAxes) {
  EXPECT_THAT(RefusalOf(Reshape("dim: 2", "axis: 3"), {{2, 3}}),
              HasSubstr("axis is 3; for an input of shape (2, 3) it must be -3 to 2"));
  EXPECT_THAT(RefusalOf(Reshape("dim: 2", "axis: 1 num_axes: 2"), {{2, 3}}),
              HasSubstr("num_axes is 2; from axis 1 on, the input (2, 3) has 1 (or -1: all of "
                        "them)"));
}

TEST(ReshapeTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Reshape" reshape_param { shape { dim: 0 dim: -1 dim: 2 dim: 3 } })",
                 {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Parameter(const std::string& shape) {
  return "type: \"Parameter\"\nparameter_param { " + shape + " }";
}

TEST(ParameterTest, HandValuesOfAnImageInPlainOrder) {
  LayerRunner layer(Parameter("shape { dim: 1 dim: 2 dim: 1 dim: 2 }"), {});
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 1, 2}));
  EXPECT_THAT(layer.GetParam(0), Each(0));
  layer.SetParam(0, {1, 2, 3, 4});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(1, 2, 3, 4));
  layer.Backward({{5, 6, 7, 8}});
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(5, 6, 7, 8));
}

TEST(ParameterTest, GradientMatchesDifferences) {
  LayerRunner layer(Parameter("shape { dim: 2 dim: 3 }"), {});
  layer.SetParam(0, LayerRunner::SomeValues(6, 1));
  layer.ExpectGradient({.inputs = {}});
}

TEST(ParameterTest, GoldenValues) { ExpectGoldenFile("layers/products/parameter.txt"); }

TEST(ParameterTest, RefusesMissingAndBadShapes) {
  EXPECT_THAT(RefusalOf("type: \"Parameter\"", {}),
              HasSubstr("net.prototxt:2:1: layer 'it' (Parameter): parameter_param has no shape; "
                        "give the shape of the weight"));
  EXPECT_THAT(RefusalOf(Parameter("shape { dim: 0 }"), {}),
              HasSubstr("net.prototxt:4:19: layer 'it' (Parameter): dim is 0; it must be at least "
                        "1"));
}

}  // namespace
}  // namespace trainer

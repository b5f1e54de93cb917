#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Reduction(const std::string& fields) {
  return "type: \"Reduction\"\nreduction_param { " + fields + " }";
}

TEST(ReductionTest, HandValues) {
  LayerRunner layer(Reduction("operation: ASUM axis: 1 coeff: 2"), {{2, 2}});
  EXPECT_THAT(layer.Forward({1, -2, 3, 0}), ElementsAre(6, 6));
  layer.Backward({{1, 10}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(2, -2, 20, 0));
}

TEST(ReductionTest, HandValuesOfEverything) {
  LayerRunner layer(Reduction("operation: MEAN"), {{2, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 6}), ElementsAre(3));
  EXPECT_EQ(layer.OutputShape(), Shape());
}

TEST(ReductionTest, GradientMatchesDifferences) {
  for (const char* op : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    for (const char* axis : {"0", "1", "2", "3"}) {
      LayerRunner layer(Reduction(std::string("operation: ") + op + " axis: " + axis),
                        {{2, 3, 2, 2}});
      layer.SetInput(0, LayerRunner::SomeValues(24, 1, 0, 0.05f));
      layer.ExpectGradient();
    }
  }
}

TEST(ReductionTest, GoldenValues) { ExpectGoldenFile("layers/shapes/reduction.txt"); }

TEST(ReductionTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Reduction("axis: 1"), {{2, 3, 4, 5}});
}

TEST(ReductionTest, RefusesAnAxisThatIsNotThere) {
  EXPECT_THAT(
      RefusalOf(Reduction("axis: 2"), {{2, 3}}),
      HasSubstr("net.prototxt:4:19: layer 'it' (Reduction): axis is 2, but the input (2, 3) "
                "has 2 axes"));
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Permute(const std::string& fields = "") {
  return "type: \"Permute\"\npermute_param { " + fields + " }";
}

const char kSsd[] = "order: 0 order: 2 order: 3 order: 1";

TEST(PermuteTest, HandValuesOfAnImageByItsAxesNames) {
  LayerRunner layer(Permute(kSsd), {{1, 2, 2, 3}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}),
              ElementsAre(1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 3, 2}));
  layer.Backward({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12));
}

TEST(PermuteTest, HandValuesOfAxesThatAreLeftOut) {
  LayerRunner layer(Permute("order: 1"), {{2, 3}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(1, 4, 2, 5, 3, 6));
  LayerRunner none(Permute(), {{2, 3}});
  EXPECT_THAT(none.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(PermuteTest, HandValuesOfAxesOfLengthOne) {
  LayerRunner layer(Permute(kSsd), {{1, 3, 1, 1}});
  EXPECT_THAT(layer.Forward({1, 2, 3}), ElementsAre(1, 2, 3));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 1, 1, 3}));
  layer.Backward({{4, 5, 6}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(4, 5, 6));
}

TEST(PermuteTest, GradientMatchesDifferences) {
  LayerRunner layer(Permute("order: 2 order: 0"), {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(PermuteTest, GoldenValues) { ExpectGoldenFile("layers/shapes/permute.txt"); }

TEST(PermuteTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Permute(kSsd), {{2, 3, 4, 5}});
  ExpectInPlaceEqual(Permute(), {{2, 3, 4, 5}});
}

TEST(PermuteTest, RefusesAxesThatAreNotThereOrTwice) {
  EXPECT_THAT(RefusalOf(Permute("order: 0 order: 4"), {{1, 2, 3, 4}}),
              HasSubstr("net.prototxt:4:26: layer 'it' (Permute): order names axis 4, but the "
                        "input (1, 2, 3, 4) has 4 axes, numbered from 0"));
  EXPECT_THAT(RefusalOf(Permute("order: 1 order: 0 order: 1"), {{2, 3}}),
              HasSubstr("order names axis 1 twice"));
}

TEST(PermuteTest, Bf16IsNearF32) { ExpectBf16Near(Permute(kSsd), {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer

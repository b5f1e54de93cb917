#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Power(const std::string& fields) {
  return "type: \"Power\" power_param { " + fields + " }";
}

TEST(PowerTest, HandValues) {
  LayerRunner layer(Power("power: 3 scale: 2 shift: 1"), {{3}});
  EXPECT_THAT(layer.Forward({0, 1, -1}), ElementsAre(1, 27, -1));
  layer.Backward({{1, 1, 1}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(6, 54, 6));
}

TEST(PowerTest, HandValuesOfDegenerateForms) {
  LayerRunner zero(Power("power: 0"), {{2}});
  EXPECT_THAT(zero.Forward({0, 5}), ElementsAre(1, 1));
  zero.Backward({{1, 1}});
  EXPECT_THAT(zero.InputGradient(), ElementsAre(0, 0));
  LayerRunner flat(Power("power: 2 scale: 0 shift: 3"), {{2}});
  EXPECT_THAT(flat.Forward({0, 5}), ElementsAre(9, 9));
  flat.Backward({{1, 1}});
  EXPECT_THAT(flat.InputGradient(), ElementsAre(0, 0));
}

TEST(PowerTest, GradientMatchesDifferences) {
  for (const char* fields :
       {"power: 2 scale: 0.5", "scale: -2 shift: 1", "power: 1.5 shift: 2", "power: -1 shift: 3"}) {
    LayerRunner layer(Power(fields), {{2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.ExpectGradient();
  }
}

TEST(PowerTest, GoldenValues) { ExpectGoldenFile("layers/activations/power.txt"); }

TEST(PowerTest, InPlaceEqualsNotInPlace) {
  for (const char* fields : {"power: 2", "scale: 3", "power: 0"}) {
    ExpectInPlaceEqual(Power(fields), {{2, 3, 4, 5}});
  }
}

TEST(PowerTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "Power")", {{2}, {2}}),
              HasSubstr("layer 'it' (Power): it needs 1 bottom, but 2 are"));
}

TEST(PowerTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Power" power_param { power: 2 scale: 0.5 shift: 1 })", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string LossOf(const std::string& power) {
  return Join("type: \"TotalVariationLoss\"\ntotal_variation_loss_param { power: ", power, " }");
}

// The squares of the differences are 4 + 1, 9 and 4; the second channel is constant.
TEST(TotalVariationLossTest, HandValuesOfAnImage) {
  LayerRunner loss(LossOf("2"), {{1, 2, 2, 2}});
  loss.SetInput(0, {0, 1, 2, 4, 5, 5, 5, 5});
  loss.Forward();
  EXPECT_THAT(loss.Output(), ElementsAre(4 + 1 + 9 + 4));
  loss.Backward({{0.5f}});
  EXPECT_THAT(loss.InputGradient(), ElementsAre(-3, -2, 0, 5, 0, 0, 0, 0));
}

TEST(TotalVariationLossTest, HandValuesOfPowerOneAreLengths) {
  LayerRunner loss(LossOf("1"), {{1, 1, 2, 2}});
  loss.SetInput(0, {0, 3, 4, 4});
  loss.Forward();
  EXPECT_THAT(loss.Output(), ElementsAre(5 + 1 + 0));
}

TEST(TotalVariationLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/total_variation_loss.txt");
}

TEST(TotalVariationLossTest, GradientMatchesDifferences) {
  for (const char* power : {"2", "2.5", "1.5"}) {
    LayerRunner loss(LossOf(power), {{2, 2, 3, 4}});
    std::vector<float> x;
    for (int i = 0; i < 48; ++i) x.push_back(static_cast<float>(i * i % 17) / 8);
    loss.SetInput(0, x);
    loss.ExpectGradient();
  }
}

TEST(TotalVariationLossTest, AFlatImageHasNoGradient) {
  LayerRunner loss(LossOf("1"), {{1, 1, 2, 3}});
  loss.SetInput(0, std::vector<float>(6, 2));
  loss.Forward();
  loss.Backward({{1}});
  EXPECT_THAT(loss.InputGradient(), testing::Each(0));
}

TEST(TotalVariationLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(LossOf("2"), {{2, 3, 4, 5}});
}

TEST(TotalVariationLossTest, RefusesWhatIsNoImageAndOddPowers) {
  EXPECT_THAT(RefusalOf(LossOf("2"), {{2, 3}}), HasSubstr("an image (N, C, H, W)"));
  EXPECT_THAT(RefusalOf(LossOf("0.5"), {{1, 1, 2, 2}}),
              HasSubstr("power is 0.5; it must be from 1 (keeps edges) to 4"));
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Dice(const std::string& fields, const std::string& loss = "") {
  return Join("type: \"DiceLoss\"\ndice_loss_param { ", fields, " } loss_param { ", loss, " }");
}

// Returns probabilities between 1/8 and 7/8.
std::vector<float> SomeProbabilities(int64_t count) {
  std::vector<float> p = LayerRunner::SomeValues(count, 1);
  for (float& one : p) one = 0.5f + 0.375f * one;
  return p;
}

// The first channel has the loss 1 - (2 * 3/4 + 1) / (1 + 1 + 1). The second has neither
// probabilities nor targets, so its loss is 0.
TEST(DiceLossTest, HandValues) {
  LayerRunner layer(Dice(""), {{1, 2, 2}, {1, 2, 2}});
  layer.SetInput(0, {0.75, 0.25, 0, 0});
  layer.SetInput(1, {1, 0, 0, 0});
  layer.Forward();
  ExpectNear(layer.Output(), {(1 - 2.5f / 3) / 2}, 1e-6f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {-(2 - 2.5f / 3) / 3, 2.5f / 9, 1, 1}, 1e-6f);
}

TEST(DiceLossTest, HandValuesOfLabelsAreThoseOfTheirTargets) {
  LayerRunner labels(Dice("", "ignore_label: 9"), {{2, 3, 2, 2}, {2, 1, 2, 2}});
  LayerRunner targets(Dice("", "ignore_label: 9"), {{2, 3, 2, 2}, {2, 3, 2, 2}});
  const std::vector<float> classes = {0, 1, 2, 9, 1, 1, 9, 0};
  std::vector<float> shares(24);
  for (size_t i = 0; i < 24; ++i) {
    const float label = classes[i / 12 * 4 + i % 4];
    shares[i] = label == 9 ? 9 : label == static_cast<float>(i / 4 % 3) ? 1 : 0;
  }
  labels.SetInput(1, classes);
  targets.SetInput(1, shares);
  EXPECT_EQ(labels.Forward(SomeProbabilities(24)), targets.Forward(SomeProbabilities(24)));
  labels.Backward({{1}});
  targets.Backward({{1}});
  EXPECT_EQ(labels.InputGradient(), targets.InputGradient());
  EXPECT_EQ(labels.InputGradient()[3], 0) << "an ignored position";
}

TEST(DiceLossTest, HandValuesOfASingleChannelTakeTargetsWithoutItsAxis) {
  std::vector<float> loss;
  for (const Shape& shape : {Shape{2, 1, 2, 3}, Shape{2, 2, 3}}) {
    LayerRunner layer(Dice("smooth: 0.5"), {{2, 1, 2, 3}, shape});
    layer.SetInput(1, {1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1});
    const std::vector<float> own = layer.Forward(SomeProbabilities(12));
    if (loss.empty()) loss = own;
    EXPECT_EQ(own, loss);
  }
}

TEST(DiceLossTest, HandValuesOfAnEmptyChannelWithoutSmoothAreZero) {
  LayerRunner layer(Dice("smooth: 0"), {{1, 1, 2}, {1, 1, 2}});
  layer.SetInput(1, {0, 0});
  ExpectNear(layer.Forward({0, 0}), {0}, 0);
  layer.Backward({{1}});
  ExpectNear(layer.InputGradient(), {0, 0}, 0);
}

TEST(DiceLossTest, GradientMatchesDifferences) {
  for (const Shape& wish : {Shape{2, 3, 2, 2}, Shape{2, 1, 2, 2}}) {
    LayerRunner layer(Dice("smooth: 0.25", "ignore_label: 9"), {{2, 3, 2, 2}, wish});
    layer.SetInput(0, SomeProbabilities(24));
    std::vector<float> wanted(static_cast<size_t>(wish.Count()));
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = i % 5 == 4 ? 9 : i % 2 == 0 ? 1 : 0;
    layer.SetInput(1, wanted);
    layer.ExpectGradient();
  }
}

TEST(DiceLossTest, GoldenValues) { ExpectGoldenFile("layers/losses/dice_loss.txt"); }

TEST(DiceLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Dice(""), {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(DiceLossTest, RefusesBadFieldsAndShapes) {
  EXPECT_THAT(RefusalOf(Dice("smooth: -1"), {{2, 3}, {2, 3}}),
              HasSubstr("net.prototxt:4:19: layer 'it' (DiceLoss): smooth is -1; it must be a "
                        "number, 0 or more"));
  EXPECT_THAT(RefusalOf(Dice("", "normalization: FULL"), {{2, 3}, {2, 3}}),
              HasSubstr("DiceLoss is a mean over items and channels and does not support "
                        "normalization; remove it"));
  EXPECT_THAT(RefusalOf(Dice(""), {{2}, {2}}),
              HasSubstr("has shape (2), but this layer needs probabilities (N, C, ...)"));
  EXPECT_THAT(RefusalOf(Dice(""), {{2, 3, 2, 2}, {2, 1, 2, 3}}),
              HasSubstr("labels 'x1' have shape (2, 1, 2, 3) but scores 'x0' have (2, 3, 2, 2)"));
}

TEST(DiceLossTest, RefusesALabelThatIsNoClass) {
  LayerRunner layer(Dice(""), {{1, 3, 1, 2}, {1, 1, 1, 2}});
  layer.SetInput(0, SomeProbabilities(6));
  layer.SetInput(1, {1, 255});
  try {
    layer.Forward();
    FAIL() << "label 255 of 3 classes was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("label 255 of item 0, position 1, of the batch is not a"));
  }
}

}  // namespace
}  // namespace trainer

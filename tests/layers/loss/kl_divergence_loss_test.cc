#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string KlDivergence(const std::string& fields = "") {
  return Join("type: \"KLDivergenceLoss\"\nloss_param { ", fields, " }");
}

// The scores log 1 and log 3 have the probabilities 1/4 and 3/4.
TEST(KlDivergenceLossTest, HandValues) {
  LayerRunner layer(KlDivergence(), {{2, 2}, {2, 2}});
  layer.SetInput(0, {0, 1.0986123f, 0, 1.0986123f});
  layer.SetInput(1, {0.25f, 0.75f, 1, 0});
  layer.Forward();
  ExpectNear(layer.Output(), {1.3862944f / 2}, 1e-6f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {0, 0, -0.75f, 0.75f}, 1e-6f);
}

TEST(KlDivergenceLossTest, HandValuesOfGreatScoresStayFinite) {
  LayerRunner layer(KlDivergence(), {{1, 2}, {1, 2}});
  layer.SetInput(1, {1, 0});
  ExpectNear(layer.Forward({-500, 500}), {1000}, 1e-6f);
}

TEST(KlDivergenceLossTest, HandValuesOfTheNormalizations) {
  for (const auto& [mode, divisor] : std::vector<std::pair<std::string, float>>{
           {"BATCH_SIZE", 1}, {"FULL", 6}, {"VALID", 6}, {"NONE", 1}}) {
    LayerRunner layer(KlDivergence("normalization: " + mode), {{1, 2, 2, 3}, {1, 2, 2, 3}});
    layer.SetInput(1, std::vector<float>(12, 0.5f));
    layer.SetInput(0, {0, 0, 0, 0, 0, 0, 1.0986123f, 0, 0, 0, 0, 0});
    layer.Forward();  // one row differs: log 1/2 - (log 1/4 + log 3/4) / 2
    ExpectNear(layer.Output(), {0.1438410f / divisor}, 1e-6f, mode);
  }
}

TEST(KlDivergenceLossTest, GradientMatchesDifferences) {
  LayerRunner layer(KlDivergence(), {{2, 3, 2, 2}, {2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  std::vector<float> targets;
  for (size_t i = 0; i < 24; ++i) targets.push_back(static_cast<float>(i % 4) / 6);
  layer.SetInput(1, targets);
  layer.ExpectGradient();
}

TEST(KlDivergenceLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/kl_divergence_loss.txt");
}

TEST(KlDivergenceLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(KlDivergence(), {{2, 3, 4, 5}, {2, 3, 4, 5}},
                     {{}, std::vector<float>(120, 0.25f)});
}

TEST(KlDivergenceLossTest, RefusesLabelsAndFieldsOfLabels) {
  EXPECT_THAT(RefusalOf(KlDivergence(), {{2, 3}, {2}}),
              HasSubstr("bottom 'x1' has shape (2), but bottom 'x0' has (2, 3); they must be"));
  for (const char* field : {"ignore_label", "label_smoothing"}) {
    EXPECT_THAT(RefusalOf(KlDivergence(Join(field, ": 0")), {{2, 3}, {2, 3}}),
                HasSubstr(Join("net.prototxt:4:14: layer 'it' (KLDivergenceLoss): "
                               "KLDivergenceLoss compares with a distribution instead of labels, "
                               "so ",
                               field, " means nothing here; remove it")));
  }
  EXPECT_THAT(RefusalOf(KlDivergence("class_weight: 1"), {{2, 3}, {2, 3}}),
              HasSubstr("only SoftmaxWithLoss, SoftmaxFocalLoss and InfogainLoss support "
                        "class_weight; remove it"));
  EXPECT_THAT(RefusalOf("type: \"KLDivergenceLoss\"\nsoftmax_param { axis: 2 }", {{2, 3}, {2, 3}}),
              HasSubstr("axis is 2, but the input (2, 3) has 2 axes"));
}

}  // namespace
}  // namespace trainer

// Labels that are no whole numbers, in every layer that reads labels.

#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"
#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

TEST(LabelRuleTest, FractionsAreCutTowardsZeroAsInCaffe) {
  const LabelRule rule{.classes = 3, .has_ignore = true, .ignore = -1};
  EXPECT_EQ(rule.Read(0.5f), 0);
  EXPECT_EQ(rule.Read(-0.5f), 0);
  EXPECT_EQ(rule.Read(2.99f), 2);
  EXPECT_EQ(rule.Read(3), kBadLabel);
  EXPECT_EQ(rule.Read(-1.5f), kIgnoredLabel);
  EXPECT_EQ(rule.Read(-2), kBadLabel);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), -3e9f, 3e9f}) {
    EXPECT_EQ(rule.Read(bad), kBadLabel) << bad;
  }
}

// The first output for these labels.
std::vector<float> Outputs(const char* text, const std::vector<float>& labels) {
  LayerRunner layer(text, {{3, 2}, {3}});
  layer.SetInput(0, {0.25, 0.5, 0.75, 0.25, 0.5, 0.125});
  layer.SetInput(1, labels);
  layer.Forward();
  return layer.Output(0);
}

TEST(LabelsTest, FractionalLabelsCountAsTheirWholePart) {
  for (const char* text : {R"(type: "SoftmaxWithLoss")", R"(type: "HingeLoss")",
                           R"(type: "MultinomialLogisticLoss")", R"(type: "Accuracy")"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Outputs(text, {0.5, 1.75, -0.25}), Outputs(text, {0, 1, 0}));
  }
  LayerRunner pairs(R"(type: "ContrastiveLoss")", {{2, 2}, {2, 2}, {2}});
  for (const int i : {0, 1}) pairs.SetInput(i, LayerRunner::SomeValues(4, 1 + i));
  pairs.SetInput(2, {0, 1});
  pairs.Forward();
  const std::vector<float> whole = pairs.Output(0);
  pairs.SetInput(2, {0.5, 1.5});
  pairs.Forward();
  EXPECT_EQ(pairs.Output(0), whole);
}

}  // namespace
}  // namespace trainer

#include "trainer/metrics/label_consumers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "inference/small_net.h"

namespace trainer {
namespace {

TEST(LabelConsumersTest, FindsClassesAndTheLayerThatGivesTheLabels) {
  const SmallNet small(R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param { shape { dim: 4 dim: 3 dim: 2 dim: 2 } shape { dim: 4 dim: 1 dim: 2 dim: 2 } } }
layer { name: "flat" type: "Flatten" bottom: "label" top: "made" }
layer { name: "again" type: "Reshape" bottom: "made" top: "again"
  reshape_param { shape { dim: 4 dim: 2 dim: 2 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "loss"
  loss_param { ignore_label: 255 } }
layer { name: "acc" type: "Accuracy" bottom: "x" bottom: "again" top: "acc"
  accuracy_param { axis: -3 } }
layer { name: "far" type: "EuclideanLoss" bottom: "x" bottom: "x" top: "far" }
)");
  const std::vector<LabelConsumer> uses = FindLabelConsumers(small.net->graph());
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(small.net->graph().nodes[NodeId(uses[0].layer)].spec.name(), "loss");
  EXPECT_EQ(uses[0].axis, 1);
  EXPECT_EQ(uses[0].classes, 3);
  EXPECT_EQ(small.net->graph().nodes[NodeId(uses[0].source)].spec.name(), "data");
  EXPECT_EQ(uses[0].source_top, 1);
  EXPECT_TRUE(uses[0].Takes(255));
  EXPECT_EQ(uses[1].axis, 1);
  EXPECT_EQ(uses[1].source, -1) << "computed";
  EXPECT_FALSE(uses[1].Takes(255));
}

TEST(LabelConsumersTest, FindsTheClassesOfAFocalLoss) {
  const SmallNet small(R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "loss" type: "SoftmaxFocalLoss" bottom: "x" bottom: "label" top: "loss" }
)");
  const std::vector<LabelConsumer> uses = FindLabelConsumers(small.net->graph());
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].classes, 3);
}

TEST(LabelConsumersTest, ALabelsWholePartIsBelowTheClasses) {
  LabelConsumer use;
  use.classes = 3;
  for (const float good : {0.0f, 2.0f, 0.5f, -0.5f}) EXPECT_TRUE(use.Takes(good)) << good;
  for (const float bad : {-1.0f, 3.0f, static_cast<float>(NAN), 1e30f}) {
    EXPECT_FALSE(use.Takes(bad)) << bad;
  }
}

TEST(LabelConsumersTest, ALabelThatIsIgnoredOrNoClassHasNoClass) {
  LabelConsumer use;
  use.classes = 3;
  use.has_ignore = true;
  use.ignore = 1;
  EXPECT_EQ(use.ClassOf(2.5f), 2);
  for (const float none : {1.0f, -1.0f, 3.0f, static_cast<float>(NAN)}) {
    EXPECT_EQ(use.ClassOf(none), -1) << none;
  }
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string SoftmaxFocal(const std::string& fields, const std::string& loss = "") {
  return Join("type: \"SoftmaxFocalLoss\"\nfocal_loss_param { ", fields, " } loss_param { ", loss,
              " }");
}

// The scores log 1 and log 3 have the probabilities 1/4 and 3/4; gamma is 2.
TEST(SoftmaxFocalLossTest, HandValues) {
  LayerRunner layer(SoftmaxFocal(""), {{2, 2}, {2}});
  layer.SetInput(0, {0, 1.0986123f, 0, 1.0986123f});
  layer.SetInput(1, {1, 0});
  layer.Forward();
  const float hit = 0.2876821f, miss = 1.3862944f;  // -log 3/4, -log 1/4
  ExpectNear(layer.Output(), {(hit / 16 + miss * 9 / 16) / 2}, 1e-6f);
  layer.Backward({{2}});
  const float easy = 1.0f / 16 + 2 * 0.75f * 0.25f * hit;
  const float hard = 9.0f / 16 + 2 * 0.25f * 0.75f * miss;
  ExpectNear(layer.InputGradient(), {easy / 4, -easy / 4, -hard * 3 / 4, hard * 3 / 4}, 1e-6f);
}

TEST(SoftmaxFocalLossTest, HandValuesOfGreatScoresStayFinite) {
  for (const char* gamma : {"0.5", "2"}) {
    LayerRunner layer(SoftmaxFocal(Join("gamma: ", gamma)), {{2, 2}, {2}});
    layer.SetInput(1, {0, 0});
    ExpectNear(layer.Forward({-500, 500, 500, -500}), {500}, 1e-6f);
    layer.Backward({{2}});
    ExpectNear(layer.InputGradient(), {-1, 1, 0, 0}, 1e-6f);
  }
}

TEST(SoftmaxFocalLossTest, WithGamma0ItIsSoftmaxWithLoss) {
  const char* const loss = "ignore_label: 3 class_weight: 2 class_weight: 0.5 class_weight: 1";
  LayerRunner focal(SoftmaxFocal("gamma: 0", loss), {{2, 3, 2, 2}, {2, 1, 2, 2}});
  LayerRunner plain(Join("type: \"SoftmaxWithLoss\" loss_param { ", loss, " }"),
                    {{2, 3, 2, 2}, {2, 1, 2, 2}});
  for (LayerRunner* layer : {&focal, &plain}) {
    layer->SetInput(0, LayerRunner::SomeValues(24, 1));
    layer->SetInput(1, {0, 1, 2, 3, 1, 1, 0, 2});
    layer->Forward();
    layer->Backward({{1}});
  }
  ExpectNear(focal.Output(), plain.Output(), 1e-6f);
  ExpectNear(focal.InputGradient(), plain.InputGradient(), 1e-6f);
}

TEST(SoftmaxFocalLossTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "gamma: 0.5", "gamma: 3"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(SoftmaxFocal(fields, "ignore_label: 7"), {{2, 3, 2, 2}, {2, 1, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.SetInput(1, {0, 1, 2, 7, 1, 7, 0, 2});
    layer.ExpectGradient();
  }
}

TEST(SoftmaxFocalLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/softmax_focal_loss.txt");
}

TEST(SoftmaxFocalLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(SoftmaxFocal(""), {{4, 3}, {4}}, {{}, {0, 2, 1, 0}});
}

TEST(SoftmaxFocalLossTest, RefusesBadFieldsAndShapes) {
  EXPECT_THAT(RefusalOf(SoftmaxFocal("gamma: -1"), {{2, 3}, {2}}),
              HasSubstr("net.prototxt:4:20: layer 'it' (SoftmaxFocalLoss): gamma is -1; it must "
                        "be 0 or more: 0 is the plain cross entropy, 2 is usual"));
  EXPECT_THAT(RefusalOf(SoftmaxFocal("alpha: 0.25"), {{2, 3}, {2}}),
              HasSubstr("alpha weighs the two sides of SigmoidFocalLoss; write class_weight in "
                        "loss_param, one factor per class"));
  EXPECT_THAT(RefusalOf(SoftmaxFocal("", "label_smoothing: 0.1"), {{2, 3}, {2}}),
              HasSubstr("SoftmaxFocalLoss does not smooth labels; remove label_smoothing, or use "
                        "SoftmaxWithLoss"));
  EXPECT_THAT(RefusalOf(SoftmaxFocal("", "class_weight: 1"), {{2, 3}, {2}}),
              HasSubstr("class_weight is given 1 times for 3 classes"));
  EXPECT_THAT(RefusalOf(SoftmaxFocal(""), {{2}, {2, 3}}),
              HasSubstr("the labels must be the second bottom"));
}

TEST(SoftmaxFocalLossTest, RefusesALabelThatIsNoClass) {
  LayerRunner layer(SoftmaxFocal(""), {{2, 3}, {2}});
  layer.SetInput(0, LayerRunner::SomeValues(6, 1));
  layer.SetInput(1, {1, 3});
  try {
    layer.Forward();
    FAIL() << "label 3 of 3 classes was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("label 3 of item 1 of the batch is not a class"));
  }
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string SigmoidFocal(const std::string& fields, const std::string& loss = "") {
  return Join("type: \"SigmoidFocalLoss\"\nfocal_loss_param { ", fields, " } loss_param { ", loss,
              " }");
}

// Here s(0) = 1/2, s(log 3) = 3/4, gamma is 2 and alpha is 1/4.
TEST(SigmoidFocalLossTest, HandValues) {
  LayerRunner layer(SigmoidFocal(""), {{1, 3}, {1, 3}});
  layer.SetInput(0, {0, 1.0986123f, 1.0986123f});
  layer.SetInput(1, {1, 1, 0});
  layer.Forward();
  const float hit = 0.2876821f, miss = 1.3862944f;  // -log 3/4, -log 1/4
  ExpectNear(layer.Output(),
             {0.25f * 0.25f * 0.6931472f + 0.25f * hit / 16 + 0.75f * miss * 9 / 16}, 1e-6f);
  layer.Backward({{1}});
  const auto slope = [](float p, float nll) { return (1 - p) * (1 - p) + 2 * p * (1 - p) * nll; };
  ExpectNear(layer.InputGradient(),
             {-0.25f * 0.5f * slope(0.5f, 0.6931472f), -0.25f * 0.25f * slope(0.75f, hit),
              0.75f * 0.75f * slope(0.25f, miss)},
             1e-6f);
}

TEST(SigmoidFocalLossTest, HandValuesOfGreatScoresStayFinite) {
  for (const char* gamma : {"0.5", "2"}) {
    LayerRunner layer(SigmoidFocal(Join("alpha: -1 gamma: ", gamma)), {{1, 4}, {1, 4}});
    layer.SetInput(1, {0, 1, 1, 0});
    ExpectNear(layer.Forward({1000, -1000, 1000, -1000}), {2000}, 1e-6f);
    layer.Backward({{1}});
    ExpectNear(layer.InputGradient(), {1, -1, 0, 0}, 1e-6f);
  }
}

TEST(SigmoidFocalLossTest, WithGamma0ItIsTheCrossEntropy) {
  LayerRunner focal(SigmoidFocal("gamma: 0 alpha: -1"), {{2, 3, 2, 2}, {2, 3, 2, 2}});
  LayerRunner plain(R"(type: "SigmoidCrossEntropyLoss")", {{2, 3, 2, 2}, {2, 3, 2, 2}});
  for (LayerRunner* layer : {&focal, &plain}) {
    layer->SetInput(0, LayerRunner::SomeValues(24, 1));
    layer->SetInput(1, std::vector<float>(24, 0.75f));
    layer->Forward();
    layer->Backward({{1}});
  }
  ExpectNear(focal.Output(), plain.Output(), 1e-6f);
  ExpectNear(focal.InputGradient(), plain.InputGradient(), 1e-6f);
}

TEST(SigmoidFocalLossTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "gamma: 0.5 alpha: 0.75", "gamma: 3 alpha: -1"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(SigmoidFocal(fields, "ignore_label: 9"), {{2, 3, 2, 1}, {2, 3, 2, 1}});
    layer.SetInput(0, LayerRunner::SomeValues(12, 1));
    layer.SetInput(1, {0, 1, 0.5, 9, 9.5, 1, 1, 0, 0, 0.25, 9, 1});
    layer.ExpectGradient();
  }
}

TEST(SigmoidFocalLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/sigmoid_focal_loss.txt");
}

TEST(SigmoidFocalLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(SigmoidFocal(""), {{2, 3, 4, 5}, {2, 3, 4, 5}});
}

TEST(SigmoidFocalLossTest, RefusesBadFieldsAndShapes) {
  EXPECT_THAT(RefusalOf(SigmoidFocal("gamma: -1"), {{2, 3}, {2, 3}}),
              HasSubstr("net.prototxt:4:20: layer 'it' (SigmoidFocalLoss): gamma is -1; it must "
                        "be 0 or more: 0 is the plain cross entropy, 2 is usual"));
  for (const char* alpha : {"1.5", "-0.5"}) {
    EXPECT_THAT(RefusalOf(SigmoidFocal(Join("alpha: ", alpha)), {{2, 3}, {2, 3}}),
                HasSubstr(Join("alpha is ", alpha,
                               "; it must be from 0 to 1, the weight of targets that are 1, or -1 "
                               "for no weights")));
  }
  EXPECT_THAT(RefusalOf(SigmoidFocal("", "pos_weight: 2"), {{2, 3}, {2, 3}}),
              HasSubstr("only SigmoidCrossEntropyLoss supports pos_weight; remove it"));
  EXPECT_THAT(RefusalOf(SigmoidFocal(""), {{2, 3}, {2}}),
              HasSubstr("bottom 'x1' has shape (2), but bottom 'x0' has (2, 3); they must be"));
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const NotChecked kHingeLossNoImages("HingeLoss", LayerCheck::kImages,
                                    "takes one score per class, no image of more than one pixel");

TEST(HingeLossTest, HandValues) {
  LayerRunner layer(R"(type: "HingeLoss")", {{2, 2}, {2}});
  layer.SetInput(0, {0.5, -2, 1.5, 0.5});
  layer.SetInput(1, {0, 1});
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(1.75));  // (0.5 + 0 + 2.5 + 0.5) / 2
  layer.Backward({{2}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(-1, 0, 1, -1));
}

TEST(HingeLossTest, GradientMatchesDifferences) {
  for (const char* norm : {"L1", "L2"}) {
    LayerRunner layer(std::string("type: \"HingeLoss\" hinge_loss_param { norm: ") + norm + " }",
                      {{4, 3}, {4}});
    std::vector<float> x = LayerRunner::SomeValues(12, 1);
    for (float& v : x) v = v * 2 + 0.03f;  // moves the scores away from the kinks at 1 and -1
    layer.SetInput(0, x);
    layer.SetInput(1, {0, 2, 1, 1});
    layer.ExpectGradient();
  }
}

TEST(HingeLossTest, GoldenValues) { ExpectGoldenFile("layers/losses/hinge_loss.txt"); }

TEST(HingeLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "HingeLoss")", {{2, 3}, {2}}, {{}, {1, 2}});
}

TEST(HingeLossTest, RefusesBadLabelsAndShapes) {
  LayerRunner layer(R"(type: "HingeLoss")", {{2, 3}, {2}});
  layer.SetInput(1, {0, 3});
  EXPECT_THAT([&] { layer.Forward(); },
              testing::ThrowsMessage<Error>(HasSubstr("label 3 of item 1 of the batch is not a "
                                                      "class: there are 3 classes, 0 to 2")));
  EXPECT_THAT(RefusalOf(R"(type: "HingeLoss")", {{2, 3}, {3}}),
              HasSubstr("labels 'x1' have shape (3) but scores 'x0' have (2, 3), which needs 2 "
                        "labels"));
  EXPECT_THAT(RefusalOf(R"(type: "HingeLoss")", {{2, 3, 2, 2}, {2}}),
              HasSubstr("bottom 'x0' has shape (2, 3, 2, 2), but this layer needs scores (N, C): "
                        "put a Flatten layer before"));
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ThresholdTest, HandValues) {
  LayerRunner layer(R"(type: "Threshold" threshold_param { threshold: 0.5 })", {{4}});
  EXPECT_THAT(layer.Forward({0, 0.5, 0.75, -1}), ElementsAre(0, 0, 1, 0));
}

TEST(ThresholdTest, GoldenValues) { ExpectGoldenFile("layers/activations/threshold.txt"); }

TEST(ThresholdTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Threshold")", {{2, 3, 4, 5}}, {},
                     {.phase = caffe::TEST, .training = false});
}

TEST(ThresholdTest, RefusesAPropagateDown) {
  EXPECT_THAT(RefusalOf(R"(type: "Threshold" propagate_down: true)", {{2}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

TEST(ThresholdTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Threshold")", {{2, 3, 5, 6}}, {}, {.training = false});
}

}  // namespace
}  // namespace trainer

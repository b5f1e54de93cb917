#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ClipTest, HandValues) {
  LayerRunner layer(R"(type: "Clip" clip_param { min: -1 max: 2 })", {{5}});
  EXPECT_THAT(layer.Forward({-3, -1, 0.5, 2, 7}), ElementsAre(-1, -1, 0.5, 2, 2));
  layer.Backward({{1, 1, 1, 1, 1}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 1, 1, 1, 0));
}

TEST(ClipTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "Clip" clip_param { min: -0.53 max: 0.53 })", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(ClipTest, GoldenValues) { ExpectGoldenFile("layers/activations/clip.txt"); }

TEST(ClipTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Clip" clip_param { min: -0.5 max: 0.5 })", {{2, 3, 4, 5}});
}

TEST(ClipTest, RefusesAnEmptyRange) {
  EXPECT_THAT(RefusalOf("type: \"Clip\"\nclip_param { min: 2 max: 1 }", {{2}}),
              HasSubstr("net.prototxt:4:14: layer 'it' (Clip): min 2 is above max 1; min must not "
                        "be larger than max"));
  EXPECT_THAT(RefusalOf("type: \"Clip\"", {{2}}),
              HasSubstr("clip_param is not given; write its min and max"));
}

TEST(ClipTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Clip" clip_param { min: -0.5 max: 0.5 })", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Lrn(const std::string& fields) { return "type: \"LRN\"\nlrn_param { " + fields + " }"; }

TEST(LrnTest, HandValuesAcrossChannels) {
  LayerRunner layer(Lrn("local_size: 3 alpha: 3 beta: 1 k: 2"), {{1, 4, 1, 1}});
  ExpectNear(layer.Forward({1, 2, 0, 3}), {1 / 7.0f, 2 / 7.0f, 0, 3 / 11.0f}, 1e-6f);
}

TEST(LrnTest, HandValuesWithinAChannelIgnoreK) {
  LayerRunner layer(Lrn("local_size: 3 alpha: 9 beta: 1 k: 5 norm_region: WITHIN_CHANNEL"),
                    {{1, 1, 1, 4}});
  ExpectNear(layer.Forward({1, 2, 0, 3}), {1 / 6.0f, 2 / 6.0f, 0, 3 / 10.0f}, 1e-6f);
}

TEST(LrnTest, HandValuesOfADefaultExponent) {
  LayerRunner layer(Lrn("local_size: 1 alpha: 15"), {{1, 1, 1, 2}});
  ExpectNear(layer.Forward({1, -1}), {0.125f, -0.125f}, 1e-6f);  // 16^-0.75
}

TEST(LrnTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "local_size: 3", "local_size: 7 beta: 0.5", "local_size: 1",
                             "local_size: 3 norm_region: WITHIN_CHANNEL",
                             "local_size: 5 beta: 1.5 norm_region: WITHIN_CHANNEL"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Lrn(fields), {{2, 6, 3, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(72, 1));
    layer.ExpectGradient();
  }
}

TEST(LrnTest, GoldenValues) { ExpectGoldenFile("lrn.txt", 2e-5f); }

TEST(LrnTest, WindowsWiderThanTheInputTakeAllOfIt) {
  const std::vector<float> x = {0.5f, -1, 2, 1, 1, -2, 0.25f, 1};
  LayerRunner all(Lrn("local_size: 3 alpha: 3"), {{4, 2, 1, 1}});
  LayerRunner wide(Lrn("local_size: 9 alpha: 9"), {{4, 2, 1, 1}});
  ExpectNear(wide.Forward(x), all.Forward(x), 1e-6f);
}

TEST(LrnTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Lrn(""), {{2, 7, 4, 5}});
  ExpectInPlaceEqual(Lrn("local_size: 3 norm_region: WITHIN_CHANNEL"), {{2, 3, 4, 5}});
}

TEST(LrnTest, RefusesAnEvenSize) {
  EXPECT_THAT(RefusalOf(Lrn("local_size: 4"), {{1, 4, 1, 1}}),
              HasSubstr("net.prototxt:4:13: layer 'it' (LRN): local_size is 4; it must be odd, so "
                        "that the neighbours lie evenly on both sides"));
}

TEST(LrnTest, RefusesWhatIsNoImage) {
  EXPECT_THAT(RefusalOf(Lrn(""), {{4, 5}}), HasSubstr("images (N, C, H, W)"));
}

TEST(LrnTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "LRN")", {{2, 7, 4, 5}});
  ExpectBf16Near(R"(type: "LRN" lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL })",
                 {{2, 7, 4, 5}});
}

}  // namespace
}  // namespace trainer

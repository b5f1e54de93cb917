#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr RunnerOptions kArgmaxTest{.phase = caffe::TEST, .training = false};

std::string ArgMax(const std::string& fields = "") {
  return "type: \"ArgMax\"\nargmax_param { " + fields + " }";
}

TEST(ArgMaxTest, HandValuesOfWholeItems) {
  LayerRunner layer(ArgMax("top_k: 2"), {{2, 3}}, kArgmaxTest);
  EXPECT_EQ(layer.OutputShape(), Shape({2, 1, 2}));
  EXPECT_THAT(layer.Forward({5, 9, 7, 1, -1, 2}), ElementsAre(1, 2, 2, 0));
}

TEST(ArgMaxTest, HandValuesOfPlacesAndValues) {
  LayerRunner layer(ArgMax("top_k: 2 out_max_val: true"), {{2, 3}}, kArgmaxTest);
  EXPECT_EQ(layer.OutputShape(), Shape({2, 2, 2}));
  EXPECT_THAT(layer.Forward({5, 9, 7, 1, -1, 2}), ElementsAre(1, 2, 9, 7, 2, 0, 2, 1));
}

TEST(ArgMaxTest, HandValuesOfImagesCountPlacesInPlainOrder) {
  LayerRunner layer(ArgMax("top_k: 3 out_max_val: true"), {{1, 2, 2, 2}}, kArgmaxTest);
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 3, 1}));
  EXPECT_THAT(layer.Forward({1, 8, 2, 3, 9, 4, 5, 7}), ElementsAre(4, 1, 7, 9, 8, 7));
}

TEST(ArgMaxTest, HandValuesAlongAnAxis) {
  LayerRunner places(ArgMax("axis: 1"), {{1, 2, 1, 3}}, kArgmaxTest);
  EXPECT_EQ(places.OutputShape(), Shape({1, 1, 1, 3}));
  EXPECT_THAT(places.Forward({1, 5, 3, 2, 4, 6}), ElementsAre(1, 0, 1));
  LayerRunner values(ArgMax("axis: -1 top_k: 2 out_max_val: true"), {{1, 2, 1, 3}}, kArgmaxTest);
  EXPECT_THAT(values.Forward({1, 5, 3, 2, 4, 6}), ElementsAre(5, 3, 6, 4));
}

TEST(ArgMaxTest, HandValuesOfEqualsAndOfWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float low = -std::numeric_limits<float>::infinity();
  LayerRunner layer(ArgMax("top_k: 4"), {{2, 4}}, kArgmaxTest);
  EXPECT_THAT(layer.Forward({3, 3, 1, 3, nan, low, nan, 0}), ElementsAre(3, 1, 0, 2, 3, 1, 2, 0));
}

TEST(ArgMaxTest, GoldenValues) { ExpectGoldenFile("layers/losses/argmax.txt"); }

TEST(ArgMaxTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(ArgMax("axis: 1"), {{2, 3, 4, 5}}, {}, kArgmaxTest);
}

TEST(ArgMaxTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(ArgMax("top_k: 0"), {{2, 3}}),
              HasSubstr("layer 'it' (ArgMax): top_k is 0; with 3 values it must be 1 to"));
  EXPECT_THAT(RefusalOf(ArgMax("top_k: 7"), {{2, 3, 2}}), HasSubstr("top_k is 7; with 6"));
  EXPECT_THAT(RefusalOf(ArgMax("axis: 2"), {{2, 3}}),
              HasSubstr("axis is 2, but the input (2, 3) has 2 axes"));
  EXPECT_THAT(RefusalOf(ArgMax() + " propagate_down: true", {{2, 3}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer

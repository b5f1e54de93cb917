#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::HasSubstr;

std::string DropPath(const std::string& ratio) {
  return "type: \"DropPath\"\ndrop_path_param { drop_ratio: " + ratio + " }";
}

// Returns the value that all elements of each item have. Fails if elements of an item differ.
std::vector<float> ItemFactors(const std::vector<float>& y, size_t items) {
  const size_t size = y.size() / items;
  std::vector<float> factors;
  for (size_t n = 0; n < items; ++n) {
    const std::vector<float> item(y.begin() + static_cast<std::ptrdiff_t>(n * size),
                                  y.begin() + static_cast<std::ptrdiff_t>((n + 1) * size));
    EXPECT_THAT(item, Each(item[0])) << n;
    factors.push_back(item[0]);
  }
  return factors;
}

TEST(DropPathTest, HandValuesDropTheAskedShareOfItemsAndScaleTheRest) {
  constexpr size_t kItems = 4000, kSize = 3;
  LayerRunner layer(DropPath("0.75"), {{kItems, kSize}});
  const std::vector<float> factors =
      ItemFactors(layer.Forward(std::vector<float>(kItems * kSize, 1)), kItems);
  const auto dropped = std::ranges::count(factors, 0.0f), kept = std::ranges::count(factors, 4.0f);
  EXPECT_EQ(dropped + kept, static_cast<std::ptrdiff_t>(kItems));
  EXPECT_NEAR(static_cast<double>(dropped), 0.75 * kItems, 120);
}

TEST(DropPathTest, HandValuesOfTestingAreTheInput) {
  LayerRunner layer(DropPath("0.5"), {{2, 3}}, {.phase = caffe::TEST, .training = false});
  const std::vector<float> x = LayerRunner::SomeValues(6, 1);
  EXPECT_EQ(layer.Forward(x), x);
}

TEST(DropPathTest, HandValuesOfRatioZeroAreTheInput) {
  LayerRunner layer(DropPath("0"), {{2, 3}});
  const std::vector<float> x = LayerRunner::SomeValues(6, 1);
  EXPECT_EQ(layer.Forward(x), x);
}

// An item here has more elements than one row of the loop.
TEST(DropPathTest, HandValuesOfImagesAreZeroOrTheScaledInputInWholeItems) {
  constexpr int64_t kItems = 16, kSize = 3 * 50 * 41;
  LayerRunner layer(DropPath("0.5"), {{kItems, 3, 50, 41}});
  const std::vector<float> x = LayerRunner::SomeValues(kItems * kSize, 1, 0, 0.25f);
  const std::vector<float> y = layer.Forward(x);
  layer.Backward({std::vector<float>(x.size(), 1)});
  const std::vector<float> dx = layer.InputGradient();
  const std::vector<float> factors = ItemFactors(dx, kItems);
  EXPECT_THAT(factors, Each(testing::AnyOf(0.0f, 2.0f)));
  EXPECT_THAT(factors, testing::Contains(0.0f));
  EXPECT_THAT(factors, testing::Contains(2.0f));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], dx[i] * x[i]) << i;
}

TEST(DropPathTest, EachPassDropsOtherItemsAndAPassRepeats) {
  LayerRunner layer(DropPath("0.5"), {{100}});
  layer.SetInput(0, std::vector<float>(100, 1));
  layer.Forward(7);
  const std::vector<float> seventh = layer.Output();
  layer.Forward(8);
  EXPECT_NE(layer.Output(), seventh);
  layer.Forward(7);
  EXPECT_EQ(layer.Output(), seventh);
}

TEST(DropPathTest, AnotherSeedDropsOtherItems) {
  const std::vector<float> x(100, 1);
  LayerRunner one(DropPath("0.5"), {{100}}), two(DropPath("0.5"), {{100}}, {.seed = 2});
  EXPECT_NE(one.Forward(x), two.Forward(x));
}

TEST(DropPathTest, GradientMatchesDifferences) {
  LayerRunner layer(DropPath("0.4"), {{6, 3, 2, 4}});
  layer.SetInput(0, LayerRunner::SomeValues(144, 1));
  layer.ExpectGradient();
}

TEST(DropPathTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(DropPath("0.5"), {{7, 9}}); }

TEST(DropPathTest, RefusesRatiosThatAreNoShareAndABatchWithoutItems) {
  EXPECT_THAT(RefusalOf(DropPath("1"), {{2}}),
              HasSubstr("net.prototxt:4:19: layer 'it' (DropPath): drop_ratio is 1; it must be "
                        "the share of items set to 0, at least 0 and below 1"));
  EXPECT_THAT(RefusalOf(DropPath("-0.5"), {{2}}), HasSubstr("drop_ratio is -0.5"));
  EXPECT_THAT(RefusalOf(DropPath("nan"), {{2}}), HasSubstr("drop_ratio is nan"));
  EXPECT_THAT(RefusalOf(DropPath("0.5"), {Shape{}}),
              HasSubstr("has shape (), but this layer needs a batch of items (N, ...)"));
}

TEST(DropPathTest, Bf16IsNearF32) {
  ExpectBf16Near(DropPath("0.5"), {{2, 3, 5, 6}});
  ExpectBf16Near(DropPath("0.5"), {{2, 3, 5, 6}}, {}, {.phase = caffe::TEST, .training = false});
}

}  // namespace
}  // namespace trainer

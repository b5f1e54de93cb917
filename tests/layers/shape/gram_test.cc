#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSums[] = "type: \"Gram\"\ngram_param { normalize: false }";

TEST(GramTest, HandValuesOfAnImage) {
  LayerRunner gram(kSums, {{1, 2, 1, 3}});
  gram.SetInput(0, {1, 2, 3, 4, 5, 6});
  gram.Forward();
  EXPECT_EQ(gram.OutputShape(), Shape({1, 2, 2}));
  EXPECT_THAT(gram.Output(), ElementsAre(14, 32, 32, 77));
  gram.Backward({{1, 0, 2, 0}});
  EXPECT_THAT(gram.InputGradient(), ElementsAre(10, 14, 18, 2, 4, 6));
}

TEST(GramTest, HandValuesAreDividedByTheNumbersOfAnImage) {
  LayerRunner gram("type: \"Gram\"", {{1, 2, 1, 2}});
  EXPECT_THAT(gram.Forward({4, 0, 2, 2}), ElementsAre(4, 2, 2, 2));
}

TEST(GramTest, GoldenValues) { ExpectGoldenFile("layers/products/gram.txt"); }

TEST(GramTest, GradientMatchesDifferences) {
  LayerRunner gram(kSums, {{2, 3, 2, 3}});
  gram.SetInput(0, LayerRunner::SomeValues(36, 1));
  gram.ExpectGradient();
}

TEST(GramTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(kSums, {{2, 3, 4, 5}}); }

TEST(GramTest, RefusesWhatIsNoImage) {
  EXPECT_THAT(RefusalOf(kSums, {{2, 3}}), HasSubstr("an image (N, C, H, W)"));
}

}  // namespace
}  // namespace trainer

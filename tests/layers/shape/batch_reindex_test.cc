#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kBatchReindexLayer[] = R"(type: "BatchReindex")";

TEST(BatchReindexTest, HandValuesOfRepeatedAndLeftOutItems) {
  LayerRunner layer(kBatchReindexLayer, {{3, 2}, {4}});
  layer.SetInput(1, {2, 0, 2, 2});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(5, 6, 1, 2, 5, 6, 5, 6));
  layer.Backward({{1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(3, 4, 0, 0, 13, 16));
}

TEST(BatchReindexTest, HandValuesOfImagesInPlainOrder) {
  LayerRunner layer(kBatchReindexLayer, {{2, 2, 1, 2}, {1}});
  layer.SetInput(1, {1});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(5, 6, 7, 8));
}

TEST(BatchReindexTest, GradientMatchesDifferences) {
  LayerRunner layer(kBatchReindexLayer, {{3, 2, 2, 2}, {4}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.SetInput(1, {1, 1, 0, 1});
  layer.ExpectGradient();
}

TEST(BatchReindexTest, GoldenValues) { ExpectGoldenFile("layers/shapes/batch_reindex.txt"); }

TEST(BatchReindexTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(kBatchReindexLayer, {{2, 3, 4, 5}, {2}}, {{}, {1, 1}});
}

TEST(BatchReindexTest, RefusesBadIndices) {
  LayerRunner layer(kBatchReindexLayer, {{2, 3}, {2}});
  layer.SetInput(1, {0, -1});
  EXPECT_THAT([&] { layer.Forward(); }, testing::ThrowsMessage<Error>(HasSubstr(
                                            "layer 'it' (BatchReindex): bottom 'x1' has the "
                                            "value -1 at index 1; there are 2 items, 0 to")));
}

TEST(BatchReindexTest, RefusesIndicesOfSeveralAxes) {
  EXPECT_THAT(RefusalOf(kBatchReindexLayer, {{2, 3}, {2, 1}}),
              HasSubstr("bottom 'x1' has shape (2, 1), but this layer needs one axis of"));
}

}  // namespace
}  // namespace trainer

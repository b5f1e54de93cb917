#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SplitTest, HandValuesAndTheSumOfGradients) {
  LayerRunner split(R"(type: "Split")", {{2}}, {.outputs = 3});
  split.Forward({1, 2});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(split.Output(i), ElementsAre(1, 2));
  split.Backward({{1, 10}, {2, 20}, {3, 30}});
  EXPECT_THAT(split.InputGradient(), ElementsAre(6, 60));
}

TEST(SplitTest, HandValuesOfTheSumForAnyNumberOfReaders) {
  for (int readers = 2; readers <= 9; ++readers) {
    LayerRunner split(R"(type: "Split")", {{2}}, {.outputs = readers});
    split.Forward({1, 2});
    std::vector<std::vector<float>> gradients;
    for (int i = 0; i < readers; ++i) gradients.push_back({static_cast<float>(1 << i), 1});
    split.Backward(gradients);
    EXPECT_THAT(split.InputGradient(), ElementsAre((1 << readers) - 1, readers));
  }
}

TEST(SplitTest, HandValuesOfImagesStayInPlainOrder) {
  LayerRunner split(R"(type: "Split")", {{1, 2, 1, 2}}, {.outputs = 2});
  split.Forward({1, 2, 3, 4});
  for (int i = 0; i < 2; ++i) EXPECT_THAT(split.Output(i), ElementsAre(1, 2, 3, 4));
  split.Backward({{1, 2, 3, 4}, {10, 20, 30, 40}});
  EXPECT_THAT(split.InputGradient(), ElementsAre(11, 22, 33, 44));
}

TEST(SplitTest, GradientMatchesDifferences) {
  LayerRunner split(R"(type: "Split")", {{2, 3, 2, 2}}, {.outputs = 2});
  split.SetInput(0, LayerRunner::SomeValues(24, 1));
  split.ExpectGradient({.output = 1});
}

TEST(SplitTest, GradientComesFromTheOutputsThatHaveOne) {
  for (const int learning : {1, 2}) {
    LayerRunner split(R"(type: "Split")", {{2}}, {.outputs = 3, .learning_outputs = learning});
    split.Forward({1, 2});
    split.Backward({{1, 10}, {2, 20}, {3, 30}});
    EXPECT_THAT(split.InputGradient(), learning == 1 ? ElementsAre(1, 10) : ElementsAre(3, 30));
  }
}

TEST(SplitTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Split")", {{2, 3, 4, 5}}, {}, {.outputs = 2});
}

TEST(SplitTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "Split")", {{2}, {2}}),
              HasSubstr("layer 'it' (Split): it needs 1 bottom, but 2 are"));
}

TEST(SplitTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Split")", {{2, 3, 5, 6}}, {}, {.outputs = 3});
}

}  // namespace
}  // namespace trainer

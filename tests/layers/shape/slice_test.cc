#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Slice(const std::string& fields) {
  return "type: \"Slice\"\nslice_param { " + fields + " }";
}

TEST(SliceTest, HandValuesOfChannels) {
  LayerRunner layer(Slice("slice_point: 1"), {{1, 3, 1, 2}}, {.outputs = 2});
  layer.Forward({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(layer.Output(0), ElementsAre(1, 2));
  EXPECT_THAT(layer.Output(1), ElementsAre(3, 4, 5, 6));
}

TEST(SliceTest, HandValuesOfAPartWithoutAGradientAreZero) {
  LayerRunner layer(Slice("slice_point: 1"), {{1, 3}}, {.outputs = 2, .learning_outputs = 1});
  layer.Forward({1, 2, 3});
  layer.Backward({{7}, {8, 9}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(7, 0, 0));
}

// A gradient of this size bypasses the caches if its blocks are whole cache lines.
TEST(SliceTest, HandValuesOfLargeBlobs) {
  TRAINER_CPU_ONLY("what it writes past its caches");
  for (const int64_t cut : {32, 31}) {
    const int64_t rows = 50000;
    LayerRunner layer(Join("type: \"Slice\" slice_param { slice_point: ", cut, " }"), {{rows, 80}},
                      {.outputs = 2});
    const std::vector<float> x = LayerRunner::SomeValues(rows * 80, 1);
    layer.Forward(x);
    layer.Backward({layer.Output(0), layer.Output(1)});
    EXPECT_EQ(layer.InputGradient(), x);
  }
}

TEST(SliceTest, HandValuesOfOnePart) {
  LayerRunner layer(Slice(""), {{1, 3}});
  EXPECT_THAT(layer.Forward({1, 2, 3}), ElementsAre(1, 2, 3));
  layer.Backward({{4, 5, 6}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(4, 5, 6));
}

TEST(SliceTest, GradientMatchesDifferences) {
  for (const int output : {0, 1}) {
    LayerRunner layer(Slice("axis: 2 slice_point: 1"), {{2, 3, 3, 2}}, {.outputs = 2});
    layer.SetInput(0, LayerRunner::SomeValues(36, 1));
    layer.ExpectGradient({.output = output});
  }
}

TEST(SliceTest, GoldenValues) { ExpectGoldenFile("layers/shapes/slice.txt"); }

TEST(SliceTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Slice("slice_point: 1"), {{2, 3, 4, 5}}, {}, {.outputs = 2});
}

TEST(SliceTest, RefusesBadCuts) {
  EXPECT_THAT(RefusalOf(Slice(""), {{2, 3}}, {.outputs = 2}),
              HasSubstr("3 elements do not divide into 2 equal parts; give the positions of the "
                        "cuts in slice_point"));
  EXPECT_THAT(RefusalOf(Slice("slice_point: 1 slice_point: 2"), {{2, 3}}, {.outputs = 2}),
              HasSubstr("slice_point is given 2 times; 2 tops need 1"));
  EXPECT_THAT(RefusalOf(Slice("slice_point: 2 slice_point: 1"), {{2, 3}}, {.outputs = 3}),
              HasSubstr("net.prototxt:4:30: layer 'it' (Slice): slice_point 1 is not between 2 "
                        "and 3: the cuts must increase, and no part may be empty"));
  EXPECT_THAT(RefusalOf(Slice("slice_point: 3"), {{2, 3}}, {.outputs = 2}),
              HasSubstr("slice_point 3 is not between 0 and 3"));
  EXPECT_THAT(RefusalOf(Slice("axis: 1 slice_dim: 1"), {{2, 3}}),
              HasSubstr("axis and slice_dim are both given; keep axis"));
  EXPECT_THAT(RefusalOf(Slice("axis: 5"), {{2, 3}}), HasSubstr("axis is 5, but the input (2, 3)"));
}

TEST(SliceTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Slice" slice_param { slice_point: 1 })", {{2, 3, 5, 6}}, {},
                 {.outputs = 2});
}

}  // namespace
}  // namespace trainer

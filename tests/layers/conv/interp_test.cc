#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Interp(const std::string& fields = "") {
  return "type: \"Interp\"\ninterp_param { " + fields + " }";
}

TEST(InterpTest, HandValuesHaveTheCornersOfTheInput) {
  LayerRunner layer(Interp("height: 3 width: 3"), {{1, 2, 2, 2}});
  EXPECT_THAT(layer.Forward({0, 2, 4, 6, 10, 10, 30, 30}),
              ElementsAre(0, 1, 2, 2, 3, 4, 4, 5, 6, 10, 10, 10, 20, 20, 20, 30, 30, 30));
  layer.Backward({{1, 2, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(3, 2, 1, 9, 0, 0, 0, 1));
}

TEST(InterpTest, HandValuesOfFactors) {
  LayerRunner zoom(Interp("zoom_factor: 2"), {{1, 1, 1, 3}});
  EXPECT_THAT(zoom.Forward({0, 2, 6}), ElementsAre(0, 1, 2, 4, 6));
  EXPECT_EQ(zoom.OutputShape(), Shape({1, 1, 1, 5}));
  LayerRunner shrink(Interp("shrink_factor: 2"), {{1, 1, 1, 5}});
  EXPECT_THAT(shrink.Forward({1, 2, 3, 4, 5}), ElementsAre(1, 3, 5));
}

TEST(InterpTest, HandValuesOfWhatIsCutOff) {
  LayerRunner layer(Interp("zoom_factor: 1 pad_beg: -1"), {{1, 1, 2, 3}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6}), ElementsAre(5, 6));
  layer.Backward({{7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(0, 0, 0, 0, 7, 8));
}

TEST(InterpTest, HandValuesOfTheSameSize) {
  LayerRunner layer(Interp("height: 1 width: 2"), {{1, 2, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
  layer.Backward({{5, 6, 7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(5, 6, 7, 8));
}

TEST(InterpTest, GradientMatchesDifferences) {
  for (const char* fields : {"height: 5 width: 3", "zoom_factor: 3", "shrink_factor: 2",
                             "height: 3 width: 3 pad_beg: -1", "height: 1 width: 9"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Interp(fields), {{1, 2, 3, 4}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.ExpectGradient();
  }
}

TEST(InterpTest, GoldenValues) { ExpectGoldenFile("layers/shapes/interp.txt"); }

TEST(InterpTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Interp("height: 7 width: 2"), {{2, 3, 4, 5}});
  ExpectInPlaceEqual(Interp("height: 4 width: 5"), {{2, 3, 4, 5}});
}

TEST(InterpTest, RefusesNoSizeAndMoreThanOne) {
  EXPECT_THAT(RefusalOf(Interp(), {{1, 1, 2, 2}}),
              HasSubstr("the size of the output is not given; write height and width, or "
                        "zoom_factor, or shrink_factor, or give a second bottom of that size"));
  EXPECT_THAT(RefusalOf(Interp("height: 3"), {{1, 1, 2, 2}}),
              HasSubstr("net.prototxt:4:16: layer 'it' (Interp): height is given without width; "
                        "give both"));
  EXPECT_THAT(RefusalOf(Interp("height: 3 width: 3 zoom_factor: 2"), {{1, 1, 2, 2}}),
              HasSubstr("zoom_factor and height and width are both given; keep one of them"));
  EXPECT_THAT(RefusalOf(Interp("shrink_factor: 2"), {{1, 1, 2, 2}, {1, 1, 3, 3}}),
              HasSubstr("shrink_factor is given, and a second bottom for the size; keep one"));
}

TEST(InterpTest, RefusesBadValuesAndShapes) {
  EXPECT_THAT(RefusalOf(Interp("height: 0 width: 3"), {{1, 1, 2, 2}}),
              HasSubstr("height is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Interp("zoom_factor: -2"), {{1, 1, 2, 2}}),
              HasSubstr("zoom_factor is -2; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Interp("zoom_factor: 2 pad_end: 1"), {{1, 1, 2, 2}}),
              HasSubstr("pad_end is 1; it must be 0, or negative to cut pixels off"));
  EXPECT_THAT(RefusalOf(Interp("zoom_factor: 2 pad_beg: -3"), {{1, 1, 4, 3}}),
              HasSubstr("pad_beg -3 and pad_end 0 leave nothing of axis 3 of the input (1, 1, 4, "
                        "3)"));
  EXPECT_THAT(RefusalOf(Interp("zoom_factor: 2"), {{4, 3}}),
              HasSubstr("bottom 'x0' has shape (4, 3), but this layer needs images (N, C, H,"));
  EXPECT_THAT(RefusalOf("type: \"Interp\"", {{1, 1, 4, 3}, {4, 3}}),
              HasSubstr("bottom 'x1' has shape (4, 3), but this layer needs images (N, C, H, W); "
                        "the second bottom gives the"));
}

TEST(InterpTest, Bf16IsNearF32) { ExpectBf16Near(Interp("zoom_factor: 2"), {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer

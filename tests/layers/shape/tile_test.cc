#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TileTest, HandValues) {
  LayerRunner layer(R"(type: "Tile" tile_param { tiles: 2 })", {{2, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  layer.Backward({{1, 2, 10, 20, 3, 4, 30, 40}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(11, 22, 33, 44));
}

TEST(TileTest, HandValuesOfOneCopy) {
  LayerRunner layer(R"(type: "Tile" tile_param { tiles: 1 })", {{2, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
}

TEST(TileTest, GradientMatchesDifferences) {
  LayerRunner layer(R"(type: "Tile" tile_param { axis: 2 tiles: 3 })", {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(TileTest, GoldenValues) { ExpectGoldenFile("layers/shapes/tile.txt"); }

TEST(TileTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Tile" tile_param { tiles: 2 })", {{2, 3, 4, 5}});
}

TEST(TileTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf("type: \"Tile\"\ntile_param { tiles: 0 }", {{2, 3}}),
              HasSubstr("net.prototxt:4:14: layer 'it' (Tile): tiles is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf("type: \"Tile\"", {{2, 3}}),
              HasSubstr("tiles is not given; it is the number of copies"));
  EXPECT_THAT(RefusalOf("type: \"Tile\" tile_param { tiles: 2 axis: 4 }", {{2, 3}}),
              HasSubstr("axis is 4, but the input (2, 3) has 2 axes"));
}

TEST(TileTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Tile" tile_param { tiles: 3 })", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer

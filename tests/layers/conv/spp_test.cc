#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Spp(const std::string& fields) { return "type: \"SPP\"\nspp_param { " + fields + " }"; }

TEST(SppTest, HandValuesOfTwoLevelsInPlainOrder) {
  LayerRunner layer(Spp("pyramid_height: 2"), {{1, 2, 2, 2}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 8, 7, 6, 5}), ElementsAre(4, 8, 1, 2, 3, 4, 8, 7, 6, 5));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 10}));
  layer.Backward({{10, 20, 1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 2, 3, 14, 25, 6, 7, 8));
}

TEST(SppTest, HandValuesOfOneLevelAreTheWholeImage) {
  LayerRunner layer(Spp("pyramid_height: 1 pool: AVE"), {{1, 2, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 3, 5, 9}), ElementsAre(2, 7));
  EXPECT_EQ(layer.OutputShape(), Shape({1, 2, 1, 1}));
  layer.Backward({{2, 4}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 1, 2, 2));
}

TEST(SppTest, HandValuesOfPaddedBins) {
  LayerRunner layer(Spp("pyramid_height: 2"), {{1, 1, 3, 3}});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4, 5, 6, 7, 8, 9}), ElementsAre(9, 1, 3, 7, 9));
}

TEST(SppTest, GradientMatchesDifferences) {
  for (const char* pool : {"MAX", "AVE"}) {
    SCOPED_TRACE(pool);
    LayerRunner layer(Spp(std::string("pyramid_height: 3 pool: ") + pool), {{2, 2, 7, 8}});
    std::vector<float> x(224);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 97 % 224) / 8;
    layer.SetInput(0, x);
    layer.ExpectGradient();
  }
}

TEST(SppTest, GoldenValues) { ExpectGoldenFile("layers/shapes/spp.txt"); }

TEST(SppTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Spp("pyramid_height: 1"), {{2, 3, 1, 1}});
}

TEST(SppTest, RefusesMoreLevelsThanTheImageHas) {
  EXPECT_THAT(RefusalOf(Spp("pyramid_height: 9"), {{1, 1, 5, 8}}),
              HasSubstr("net.prototxt:4:13: layer 'it' (SPP): level 2 divides images of 5x8 into "
                        "4x4 bins, and some bins would contain padding only; use at most 2 "
                        "levels, or larger images"));
}

TEST(SppTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf("type: \"SPP\"", {{1, 1, 4, 4}}),
              HasSubstr("pyramid_height is not given; it is the number of levels"));
  EXPECT_THAT(RefusalOf(Spp("pyramid_height: 0"), {{1, 1, 4, 4}}),
              HasSubstr("pyramid_height is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Spp("pyramid_height: 1 pool: STOCHASTIC"), {{1, 1, 4, 4}}),
              HasSubstr("STOCHASTIC pooling does not allow padding; use MAX or AVE"));
  EXPECT_THAT(RefusalOf(Spp("pyramid_height: 1"), {{4, 4}}),
              HasSubstr("bottom 'x0' has shape (4, 4), but this layer needs images (N, C, H,"));
}

}  // namespace
}  // namespace trainer

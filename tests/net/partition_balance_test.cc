// The places where a chain of layers is cut, by the cost of each layer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/net/partition.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<LayerCost> Times(const std::vector<double>& times) {
  std::vector<LayerCost> layers;
  for (const double time : times) layers.push_back({.time = time});
  return layers;
}

TEST(BalancedStagesTest, EvenOutTheWork) {
  EXPECT_THAT(BalancedStages(Times({1, 1, 1, 1}), 2, 1), ElementsAre(0, 2));
  EXPECT_THAT(BalancedStages(Times({5, 1, 1, 1, 2}), 2, 1), ElementsAre(0, 1));
  EXPECT_THAT(BalancedStages(Times({1, 2, 3, 4, 5, 6}), 3, 1), ElementsAre(0, 3, 5));
}

TEST(BalancedStagesTest, CutNowhereWhereLayersAreComputedTogether) {
  std::vector<LayerCost> layers = Times({1, 1, 1, 1});
  layers[2].may_cut = false;
  layers[1].may_cut = false;
  EXPECT_THAT(BalancedStages(layers, 2, 1), ElementsAre(0, 3));
  layers[3].may_cut = false;
  EXPECT_THAT(BalancedStages(layers, 2, 1), IsEmpty());
  EXPECT_THAT(BalancedStages(Times({1, 1}), 3, 1), IsEmpty());
}

TEST(BalancedStagesTest, CutWhereLessCrossesAmongCutsThatAreAsGood) {
  std::vector<LayerCost> layers = Times({10, 0.1, 0.1, 10});
  layers[1].crossing_bytes = 100;
  layers[2].crossing_bytes = 7;
  layers[3].crossing_bytes = 50;
  EXPECT_THAT(BalancedStages(layers, 2, 1), ElementsAre(0, 2));
}

// The first layer has most of the work, and the others have most of the weights. A cut after layer
// 0 gives one stage 0.9 of the weights; a cut after layer 1 gives one stage 0.8 of the time.
TEST(BalancedStagesTest, EvenOutTheMemoryToo) {
  std::vector<LayerCost> layers(3);
  layers[0] = {.time = 6, .weight_bytes = 10};
  layers[1] = {.time = 2, .weight_bytes = 40};
  layers[2] = {.time = 2, .weight_bytes = 50};
  EXPECT_THAT(BalancedStages(layers, 2, 1), ElementsAre(0, 2))
      << "0.8 of time against 0.9 of memory";
}

// Stage 0 of two has two passes in flight: its values count twice.
TEST(BalancedStagesTest, CountValuesForEachPassUnderWay) {
  std::vector<LayerCost> layers(3);
  for (LayerCost& layer : layers) layer = {.pass_bytes = 10};
  EXPECT_THAT(BalancedStages(layers, 2, 1), ElementsAre(0, 1)) << "20 and 20 in place of 40 and 10";
}

}  // namespace
}  // namespace trainer

// Compares layers with the peak of a machine, in figures worked out by hand.

#include "timing/roofline.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

using Kind = RooflineFraction::Kind;

// At 100 GFLOP/s and 10 GB/s, 1 GFLOP takes 10 ms and 1 GB takes 100 ms.
constexpr MachinePeak kPeak{100, 10};

TEST(RooflineTest, ComparesTheSlowerOfProductsAndMemoryWithTheTime) {
  const RooflineFraction products = FractionOfPeak({1e9, 1e6}, 20, kPeak);
  EXPECT_EQ(products.kind, Kind::kPercent);
  EXPECT_NEAR(products.percent, 50, 1e-9);
  EXPECT_NEAR(FractionOfPeak({1e6, 1e8}, 40, kPeak).percent, 25, 1e-9);
}

TEST(RooflineTest, GivesNoPercentageWhereTheModelDoesNotHold) {
  EXPECT_EQ(FractionOfPeak({0, 0}, 1, kPeak).kind, Kind::kUnknown);
  EXPECT_EQ(FractionOfPeak({1e9, 0}, 0, kPeak).kind, Kind::kUnknown);
  EXPECT_EQ(FractionOfPeak({0, 1e9}, 50, kPeak).kind, Kind::kCached);
  EXPECT_EQ(FractionOfPeak({1e9, 0}, 5, kPeak).kind, Kind::kFewerProducts);
  EXPECT_EQ(FractionOfPeak({1e9, 0, true}, 20, kPeak).kind, Kind::kFewerProducts);
}

TEST(RooflineTest, RatesAreBillionsPerSecond) {
  EXPECT_EQ(Rate(0, 1), std::nullopt);
  EXPECT_EQ(Rate(1, 0), std::nullopt);
  EXPECT_NEAR(Rate(1e9, 100).value(), 10, 1e-9);
}

NetProfile TwoLayers() {
  NetProfile profile;
  profile.peak = kPeak;
  profile.layers.resize(2);
  profile.layers[0].forward_cost = {1e9, 1e6};
  profile.layers[0].forward.Add(20);
  profile.layers[1].forward_cost = {1e9, 1e6};
  profile.layers[1].forward.Add(5);  // 200 GFLOP/s
  return profile;
}

TEST(RooflineTest, AFasterLayerRaisesThePeakUnlessItMayComputeFewerProducts) {
  NetProfile profile = TwoLayers();
  RaisePeak(&profile);
  EXPECT_NEAR(profile.peak.gflops, 200, 1e-9);
  EXPECT_EQ(profile.peak.gbytes, 10);
  for (const char* implementation : {"Winograd F(4x4, 3x3)", "cuDNN convolution"}) {
    profile = TwoLayers();
    profile.layers[1].implementation = implementation;
    RaisePeak(&profile);
    EXPECT_EQ(profile.peak.gflops, 100) << implementation;
  }
}

TEST(RooflineTest, AnIterationTakesItsLayersAndItsUpdateEachAtMostTheirTime) {
  NetProfile profile = TwoLayers();
  profile.update_bytes = 10'000'000;
  const RooflineTime least = RooflineTimeOf(profile);
  EXPECT_NEAR(least.cost.flops, 2e9, 1);
  EXPECT_NEAR(least.cost.bytes, 12e6, 1);
  EXPECT_NEAR(least.arithmetic_ms, 10 + 5, 1e-9);
  EXPECT_NEAR(least.memory_ms, 1, 1e-9);
}

TEST(RooflineTest, ALayerIsEitherArithmeticOrMemoryTrafficWhicheverTakesLonger) {
  NetProfile profile = TwoLayers();
  profile.layers[0].backward_cost = {1e9, 2e8};  // 10 ms and 20 ms
  profile.layers[0].backward.Add(30);
  const RooflineTime least = RooflineTimeOf(profile);
  EXPECT_NEAR(least.arithmetic_ms, 10 + 5, 1e-9);
  EXPECT_NEAR(least.memory_ms, 20, 1e-9);
}

TEST(RooflineTest, LayersCountInEachPassOfAnIterationAndTheUpdateOnce) {
  NetProfile profile = TwoLayers();
  profile.passes_per_step = 3;
  profile.update_bytes = 10'000'000;
  const RooflineTime least = RooflineTimeOf(profile);
  EXPECT_NEAR(least.cost.flops, 6e9, 1);
  EXPECT_NEAR(least.cost.bytes, 16e6, 1);
  EXPECT_NEAR(least.arithmetic_ms, 3 * (10 + 5), 1e-9);
  EXPECT_NEAR(least.memory_ms, 1, 1e-9);
}

TEST(RooflineTest, SharesOfAnIterationSumTo100Percent) {
  NetProfile profile = TwoLayers();
  profile.update_bytes = 100'000'000;  // 10 ms
  profile.pass.Add(30);
  profile.step.Add(50);
  const StepShares shares = StepSharesOf(profile).value();
  EXPECT_NEAR(shares.arithmetic, 30, 1e-9);
  EXPECT_NEAR(shares.memory, 20, 1e-9);
  EXPECT_NEAR(shares.rest, 50, 1e-9);
}

TEST(RooflineTest, NothingRemainsOfAnIterationThatIsFasterThanItsLayersOneByOne) {
  NetProfile profile = TwoLayers();
  profile.update_bytes = 100'000'000;
  profile.step.Add(20);
  const StepShares shares = StepSharesOf(profile).value();
  EXPECT_NEAR(shares.arithmetic, 60, 1e-9);
  EXPECT_NEAR(shares.memory, 40, 1e-9);
  EXPECT_NEAR(shares.rest, 0, 1e-9);
}

TEST(RooflineTest, SharesAreUnknownWithoutAPeakOrATime) {
  NetProfile profile = TwoLayers();
  EXPECT_FALSE(StepSharesOf(profile).has_value());
  profile.pass.Add(30);
  EXPECT_TRUE(StepSharesOf(profile).has_value());
  profile.peak = {};
  EXPECT_FALSE(StepSharesOf(profile).has_value());
  EXPECT_EQ(RooflineTimeOf(profile).Ms(), 0);
}

TEST(RooflineTest, CountsOperationsWhereALayerKnowsThem) {
  NetProfile profile = TwoLayers();
  EXPECT_EQ(CountOperations(profile), std::nullopt);
  profile.layers[0].forward_operations = 3;
  profile.layers[1].backward_operations = 4;
  EXPECT_EQ(CountOperations(profile), 7);
}

}  // namespace
}  // namespace trainer

#include "trainer/inference/generative/rbm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "generative/exact_partition.h"
#include "generative/gibbs_sampler.h"
#include "generative/parzen_window.h"
#include "inference/small_rbm.h"
#include "support/error_of.h"
#include "trainer/inference/generative/ais_partition.h"
#include "trainer/inference/generative/free_energy.h"

namespace trainer {
namespace {

using testing::HasSubstr;

double LogSumOfAllStates(SmallRbm& small) {
  double sum = 0;
  const auto visible = static_cast<int>(small.rbm.units.visible);
  for (int bits = 0; bits < 1 << visible; ++bits) {
    std::vector<double> v;
    for (int i = 0; i < visible; ++i) v.push_back(bits >> i & 1);
    sum += std::exp(small.LogP(v));
  }
  return std::log(sum);
}

TEST(PartitionTest, TheExactSumIsThatOfAllStatesOverEitherSide) {
  SmallRbm few_hidden(6, 4), few_visible(4, 6);
  EXPECT_NEAR(ExactPartition(*few_hidden.device, few_hidden.rbm), LogSumOfAllStates(few_hidden),
              1e-9);
  EXPECT_NEAR(ExactPartition(*few_visible.device, few_visible.rbm), LogSumOfAllStates(few_visible),
              1e-9);
}

TEST(PartitionTest, TheExactSumOfGaussianUnitsIsTheIntegral) {
  SmallRbm small(1, 3, "visible: GAUSSIAN");
  double sum = 0;
  constexpr double kStep = 0.001;
  for (double v = -20; v < 20; v += kStep) sum += kStep * std::exp(small.LogP({v}));
  EXPECT_NEAR(ExactPartition(*small.device, small.rbm), std::log(sum), 1e-6);
}

TEST(PartitionTest, AnnealingEstimatesTheExactSumWithinItsBounds) {
  for (const char* fields : {"", "visible: GAUSSIAN"}) {
    SmallRbm small(12, 10, fields);
    AisOptions options;
    options.chains = 500;
    options.steps = 1000;
    const std::vector<float> means(12, 0.5f);
    const PartitionEstimate estimate =
        EstimatePartitionAis(*small.device, small.rbm, means, options);
    const double exact = ExactPartition(*small.device, small.rbm);
    EXPECT_NEAR(estimate.log_z, exact, 0.05) << fields;
    EXPECT_LT(estimate.low, exact) << fields;
    EXPECT_GT(estimate.high, exact) << fields;
    EXPECT_LT(estimate.error, 0.05) << fields;
  }
}

TEST(PartitionTest, RefusesTheExactSumOfALargeMachine) {
  SmallRbm large(30, 23);
  const auto [code, text] = ErrorOf([&] { ExactPartition(*large.device, large.rbm); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("the exact sum needs 2^23 states of the hidden units of 'rbm'"));
}

TEST(FreeEnergyTest, IsTheMeanOfWhatTheLayerReads) {
  SmallRbm small(3, 2);
  small.net.WriteNchw(std::vector<float>{1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1}, small.net.Value("x"));
  const FreeEnergy data = MeasureFreeEnergy(small.net, small.rbm, 2);
  EXPECT_EQ(data.records, 8);
  const double expected = -(small.LogP({1, 0, 0}) + small.LogP({1, 1, 0}) + small.LogP({0, 0, 1}) +
                            small.LogP({1, 1, 1})) /
                          4;
  EXPECT_NEAR(data.free_energy, expected, 1e-5);
  EXPECT_THAT(data.means, testing::ElementsAre(0.75f, 0.5f, 0.5f));
}

TEST(GibbsSamplerTest, ChainsHaveTheMeansOfTheMachine) {
  SmallRbm small(4, 3);
  std::vector<double> expected(4);
  const double log_z = ExactPartition(*small.device, small.rbm);
  for (int bits = 0; bits < 16; ++bits) {
    std::vector<double> v;
    for (int i = 0; i < 4; ++i) v.push_back(bits >> i & 1);
    for (size_t i = 0; i < 4; ++i) expected[i] += v[i] * std::exp(small.LogP(v) - log_z);
  }
  constexpr int kChains = 2000, kSamples = 20;
  GibbsSampler sampler(*small.device, {small.rbm}, kChains, 3);
  for (int step = 0; step < 20; ++step) sampler.Step();
  std::vector<double> sums(4);
  for (int sample = 0; sample < kSamples; ++sample) {
    sampler.Step();
    const std::vector<float> means = sampler.Means();
    for (size_t i = 0; i < means.size(); ++i) sums[i % 4] += means[i] / (kChains * kSamples);
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(sums[i], expected[i], 0.01) << i;
}

TEST(GibbsSamplerTest, RefusesMachinesThatDoNotFit) {
  SmallRbm first(4, 3), second(4, 3);
  const auto [code, text] = ErrorOf([&] {
    GibbsSampler(*first.device, {first.rbm, second.rbm}, 2, 1);
  });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("has 4 visible units, but 'rbm' before it has 3 hidden ones"));
}

TEST(ParzenWindowTest, HandValues) {
  const std::unique_ptr<Device> device = MakeTestDevice();
  ParzenWindow window(*device, std::vector<float>{0, 0, 3, 4}, 2, 2);
  const std::vector<double> densities =
      window.MeanLogDensities(std::vector<float>{0, 0, 3, 4, 1, 0}, std::vector<double>{1, 2});
  const auto expected = [](double sigma) {
    const auto kernel = [&](double square) { return std::exp(-square / (2 * sigma * sigma)); };
    const double norm = std::log(2 * M_PI * sigma * sigma);
    return (2 * std::log((1 + kernel(25)) / 2) + std::log((kernel(1) + kernel(20)) / 2)) / 3 - norm;
  };
  EXPECT_NEAR(densities[0], expected(1), 1e-5);
  EXPECT_NEAR(densities[1], expected(2), 1e-5);
}

}  // namespace
}  // namespace trainer

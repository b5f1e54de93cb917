#include "trainer/inference/generative/rbm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/generative/ais_partition.h"
#include "trainer/inference/generative/exact_partition.h"
#include "trainer/inference/generative/free_energy.h"
#include "trainer/inference/generative/gibbs_sampler.h"
#include "trainer/inference/generative/parzen_window.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// A net with one RBM of random weights.
struct SmallRbm {
  SmallRbm(int visible, int hidden, const std::string& fields = "")
      : device(MakeTestDevice()),
        spec(NetFromText(Join(
            "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: ", visible,
            " } } } layer { name: 'rbm' type: 'RBM' bottom: 'x' top: 'h' rbm_param { num_output: ",
            hidden,
            " weight_filler { type: 'gaussian' std: 0.7 } hidden_bias_filler { type: "
            "'uniform' min: -1 max: 1 } visible_bias_filler { type: 'uniform' min: -1 max: 1 } ",
            fields, " } }"))),
        params(*device),
        net(spec, OptionsOf(), *device, params),
        rbm(FindRbms(net).at(0)) {}

  static NetOptions OptionsOf() {
    NetOptions options;
    options.state = StateOf(caffe::TEST);
    options.seed = 5;
    options.log = false;
    options.memory = MemoryMode::kSeparate;
    return options;
  }
  std::vector<float> Values(const char* param) { return WeightOf(*device, *params.Find(param)); }
  // -free energy of visible units.
  double LogP(const std::vector<double>& v) {
    const std::vector<float> w = Values("rbm:0"), c = Values("rbm:1"), b = Values("rbm:2");
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      sum += rbm.units.gaussian ? -0.5 * (v[i] - b[i]) * (v[i] - b[i]) : b[i] * v[i];
    }
    for (size_t j = 0; j < c.size(); ++j) {
      double input = c[j];
      for (size_t i = 0; i < v.size(); ++i) input += w[j * v.size() + i] * v[i];
      sum += std::log1p(std::exp(input));
    }
    return sum;
  }

  std::unique_ptr<Device> device;
  NetSpec spec;
  ParamStore params;
  Net net;
  RbmModel rbm;
};

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
  small.net.WritePlain(std::vector<float>{1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1},
                       small.net.Value("x"));
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

// Tests the gradient of an RBM layer that learns by contrastive divergence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

#include "support/error_of.h"
#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class Machine {
 public:
  Machine(int rows, int visible, int hidden, const ChainOptions& chain,
          const std::string& fields = "", float loss_weight = 1)
      : device_(MakeTestDevice()),
        spec_(NetFromText(Join(
            "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: ", rows,
            " dim: ", visible,
            " } } } layer { name: 'rbm' type: 'RBM' bottom: 'x' top: 'h' top: 'error' loss_weight: "
            "0 loss_weight: ",
            loss_weight, " rbm_param { num_output: ", hidden, " ", fields, " } }"))),
        params_(*device_) {
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.chain = chain;
    net_.emplace(spec_, options, *device_, params_);
  }

  void SetInput(const std::vector<float>& values) { net_->WriteNchw(values, net_->Value("x")); }
  void SetParam(int i, const std::vector<float>& values) {
    WriteFloats(*device_, values, ParamAt(i).weight);
  }
  float Step() {
    params_.ClearGradients();
    const float loss = net_->Forward();
    net_->Backward();
    return loss;
  }
  std::vector<float> Gradient(int i) { return GradOf(*device_, ParamAt(i)); }

 private:
  Param& ParamAt(int i) { return *params_.Find(Join("rbm:", i)); }

  std::unique_ptr<Device> device_;
  NetSpec spec_;
  ParamStore params_;
  std::optional<Net> net_;
};

// The biases are so large that all draws are certain: p = q = (1, 0), u = (1, 0).
TEST(ContrastiveDivergenceTest, HandValuesWhereAllDrawsAreCertain) {
  for (const bool persistent : {false, true}) {
    Machine machine(2, 2, 2, {.steps = 2, .persistent = persistent}, "", 0.5f);
    machine.SetParam(1, {80, -80});
    machine.SetParam(2, {80, -80});
    machine.SetInput({0.25f, 1, 0.75f, 0.5f});
    const float loss = machine.Step();
    EXPECT_FLOAT_EQ(loss, 0.5f * (0.5625f + 1 + 0.0625f + 0.25f) / 2);
    ExpectNear(machine.Gradient(0), {0.5f * 0.5f, 0.5f * -0.75f, 0, 0}, 1e-6f);
    ExpectNear(machine.Gradient(1), {0, 0}, 1e-6f);
    ExpectNear(machine.Gradient(2), {0.5f * 0.5f, 0.5f * -0.75f}, 1e-6f);
  }
}

TEST(ContrastiveDivergenceTest, HandValuesOfTheSparsityTarget) {
  Machine machine(1, 2, 1, {.sparsity_target = 0.25f, .sparsity_cost = 0.5f});
  machine.SetParam(1, {80});
  machine.SetParam(2, {80, -80});
  machine.SetInput({1, 0.5f});
  machine.Step();
  // p = 1 and its running mean is 1: 0.5 (1 - 0.25) is added at each visible unit and the bias.
  ExpectNear(machine.Gradient(0), {0.375f, -0.5f + 0.375f * 0.5f}, 1e-6f);
  ExpectNear(machine.Gradient(1), {0.375f}, 1e-6f);
  ExpectNear(machine.Gradient(2), {0, -0.5f}, 1e-6f);
}

// The gradient of -mean log p(v), from an enumeration of all visible states in double.
struct Exact {
  std::vector<double> dw, dc, db;
};

Exact Enumerate(int visible, int hidden, const std::vector<float>& w, const std::vector<float>& c,
                const std::vector<float>& b, const std::vector<float>& data) {
  const auto size = [](int n) { return static_cast<size_t>(n); };
  Exact exact{std::vector<double>(w.size()), std::vector<double>(c.size()),
              std::vector<double>(b.size())};
  const auto add = [&](const std::vector<double>& v, double weight) {
    for (size_t j = 0; j < size(hidden); ++j) {
      double input = c[j];
      for (size_t i = 0; i < v.size(); ++i) input += w[j * v.size() + i] * v[i];
      const double mean = 1 / (1 + std::exp(-input));
      exact.dc[j] += weight * mean;
      for (size_t i = 0; i < v.size(); ++i) exact.dw[j * v.size() + i] += weight * mean * v[i];
    }
    for (size_t i = 0; i < v.size(); ++i) exact.db[i] += weight * v[i];
  };
  const auto unnormalised = [&](const std::vector<double>& v) {
    double log_p = 0;
    for (size_t i = 0; i < v.size(); ++i) log_p += b[i] * v[i];
    for (size_t j = 0; j < size(hidden); ++j) {
      double input = c[j];
      for (size_t i = 0; i < v.size(); ++i) input += w[j * v.size() + i] * v[i];
      log_p += std::log1p(std::exp(input));
    }
    return std::exp(log_p);
  };
  std::vector<std::vector<double>> states;
  for (int bits = 0; bits < 1 << visible; ++bits) {
    std::vector<double> v;
    for (int i = 0; i < visible; ++i) v.push_back(bits >> i & 1);
    states.push_back(v);
  }
  double total = 0;
  for (const auto& v : states) total += unnormalised(v);
  for (const auto& v : states) add(v, unnormalised(v) / total);
  const size_t records = data.size() / size(visible);
  for (size_t n = 0; n < records; ++n) {
    const auto* const from = data.data() + n * size(visible);
    add(std::vector<double>(from, from + visible), -1.0 / static_cast<double>(records));
  }
  return exact;
}

TEST(ContrastiveDivergenceTest, PersistentChainsGiveTheGradientOfTheLikelihood) {
  const std::vector<float> w = {0.5f, -0.75f, 0.25f, 1,    -0.5f, 0.75f,
                                -1,   0.5f,   0.25f, 0.5f, -0.5f, 1};
  const std::vector<float> c = {0.25f, -0.5f, 0}, b = {-0.25f, 0.5f, 0.25f, -0.5f};
  const std::vector<float> data = {1, 0, 0, 1, 1, 1, 0, 0};
  const Exact exact = Enumerate(4, 3, w, c, b, data);
  Machine machine(2, 4, 3, {.persistent = true, .chains = 200});
  machine.SetParam(0, w);
  machine.SetParam(1, c);
  machine.SetParam(2, b);
  machine.SetInput(data);
  for (int pass = 0; pass < 50; ++pass) machine.Step();
  std::vector<double> sums(w.size());
  constexpr int kPasses = 500;
  for (int pass = 0; pass < kPasses; ++pass) {
    machine.Step();
    const std::vector<float> gradient = machine.Gradient(0);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += gradient[i] / kPasses;
  }
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], exact.dw[i], 0.01) << i;
}

// If chains start at the data, one step is not enough to forget it, but many steps are.
TEST(ContrastiveDivergenceTest, ManyStepsComeNearTheGradientOfTheLikelihood) {
  const std::vector<float> w = {2, -2, 1, 1.5f}, c = {-0.5f, 0.5f}, b = {0.5f, -0.5f};
  const std::vector<float> data = {1, 0};
  const Exact exact = Enumerate(2, 2, w, c, b, data);
  double errors[2] = {};
  for (const int steps : {1, 30}) {
    std::vector<float> rows;
    for (int n = 0; n < 500; ++n) rows.insert(rows.end(), data.begin(), data.end());
    Machine machine(500, 2, 2, {.steps = steps});
    machine.SetParam(0, w);
    machine.SetParam(1, c);
    machine.SetParam(2, b);
    machine.SetInput(rows);
    std::vector<double> sums(w.size());
    for (int pass = 0; pass < 40; ++pass) {
      machine.Step();
      const std::vector<float> gradient = machine.Gradient(0);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += gradient[i] / 40;
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      errors[steps > 1] = std::max(errors[steps > 1], std::fabs(sums[i] - exact.dw[i]));
    }
  }
  EXPECT_GT(errors[0], 0.05);
  EXPECT_LT(errors[1], 0.02);
}

TEST(ContrastiveDivergenceTest, RefusesALossOfTheFreeEnergy) {
  const NetSpec spec = NetFromText(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n"
      "layer { name: 'rbm' type: 'RBM' bottom: 'x' top: 'h' top: 'error' top: 'free_energy'\n"
      "loss_weight: 0 loss_weight: 0\nloss_weight: 1 rbm_param { num_output: 2 } }");
  const std::unique_ptr<Device> device = MakeTestDevice();
  ParamStore params(*device);
  const auto [code, text] =
      ErrorOf([&] { Net(spec, QuietOptions(caffe::TRAIN), *device, params); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text,
              HasSubstr("net.prototxt:4:1: layer 'rbm' (RBM): the third top, the free energy, "
                        "is only reported"));
}

TEST(ContrastiveDivergenceTest, GaussianUnitsLearnTheMeanOfTheData) {
  Machine machine(4, 2, 1, {}, "visible: GAUSSIAN");
  machine.SetParam(2, {0, 0});
  machine.SetInput({3, -2, 3, -2, 3, -2, 3, -2});
  double sums[2] = {};
  for (int pass = 0; pass < 2000; ++pass) {
    machine.Step();
    const std::vector<float> gradient = machine.Gradient(2);
    for (size_t i = 0; i < 2; ++i) sums[i] += gradient[i] / 2000;
  }
  EXPECT_NEAR(sums[0], -3, 0.05);
  EXPECT_NEAR(sums[1], 2, 0.05);
}

}  // namespace
}  // namespace trainer

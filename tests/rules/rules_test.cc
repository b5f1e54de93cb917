// Ten steps of each rule against an independent implementation, and what rules refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/golden.h"
#include "trainer/rules/clip.h"
#include "trainer/rules/rule.h"
#include "trainer/solver/lr_policy.h"

namespace trainer {
namespace {

using testing::HasSubstr;

SolverSpec SolverFromText(const std::string& text) {
  SolverSpec spec;
  spec.file = "solver.prototxt";
  spec.text = ParseTextString(spec.file, text, &spec.proto);
  return spec;
}

// The two parameters of a golden case, side by side in one array as in a ParamStore.
struct Weights {
  std::vector<float> weight, grad, state[2];
  std::vector<size_t> start = {0};

  void Add(const std::vector<float>& values) {
    weight.insert(weight.end(), values.begin(), values.end());
    start.push_back(weight.size());
  }
};

class RuleGoldenTest : public testing::Test {
 protected:
  void RunCase(const GoldenCase& golden) {
    SCOPED_TRACE(golden.name);
    const SolverSpec spec = SolverFromText(golden.Text("solver"));
    const auto device = MakeCpuDevice(1);
    const auto rule = MakeRule(spec);
    Weights w;
    for (int p = 0; p < 2; ++p) w.Add(golden.Tensor(Join("start_", p)).values);
    w.grad.assign(w.weight.size(), 0.0f);
    for (auto& state : w.state) state.assign(w.weight.size(), 0.0f);
    for (int step = 0; step < 10; ++step) {
      SetGradients(golden, step, w);
      Step(golden, spec, step, *device, *rule, w);
      ExpectAfter(golden, step, w);
    }
  }

 private:
  static void SetGradients(const GoldenCase& golden, int step, Weights& w) {
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float>& sums = golden.Tensor(Join("gradient_sums_", p)).values;
      const size_t count = w.start[p + 1] - w.start[p];
      for (size_t i = 0; i < count; ++i) {
        w.grad[w.start[p] + i] = sums[static_cast<size_t>(step) * count + i];
      }
    }
  }

  static void Step(const GoldenCase& golden, const SolverSpec& spec, int step, const Device& device,
                   Rule& rule, Weights& w) {
    float norm_scratch = 0;
    const float norm = L2Norm(device, w.grad, &norm_scratch);
    const float clip = spec.proto.clip_gradients();
    ParamSlice slice;
    slice.grad_scale =
        (clip >= 0 && norm > clip ? clip / norm : 1) / static_cast<float>(spec.proto.iter_size());
    slice.iter = step;
    for (size_t p = 0; p < 2; ++p) {
      const auto lr_mult = static_cast<float>(golden.Number(Join("lr_mult_", p)));
      const auto decay_mult = static_cast<float>(golden.Number(Join("decay_mult_", p)));
      const bool l1 = spec.proto.regularization_type() == "L1";
      slice.rate = LearningRate(spec.proto, step, 0) * lr_mult;
      slice.decay_l1 = l1 ? spec.proto.weight_decay() * decay_mult : 0;
      slice.decay_l2 = l1 ? 0 : spec.proto.weight_decay() * decay_mult;
      slice.count = static_cast<int64_t>(w.start[p + 1] - w.start[p]);
      slice.weight = w.weight.data() + w.start[p];
      slice.grad = w.grad.data() + w.start[p];
      for (int s = 0; s < rule.StatesPerWeight(); ++s)
        slice.state[s] = w.state[s].data() + w.start[p];
      rule.Step(device, slice);
    }
  }

  static void ExpectAfter(const GoldenCase& golden, int step, const Weights& w) {
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float>& after = golden.Tensor(Join("after_", p)).values;
      const size_t count = w.start[p + 1] - w.start[p];
      for (size_t i = 0; i < count; ++i) {
        const float expected = after[static_cast<size_t>(step) * count + i];
        EXPECT_NEAR(w.weight[w.start[p] + i], expected, 1e-5 * std::max(1.0f, std::fabs(expected)))
            << "step " << step << " parameter " << p << " element " << i;
        EXPECT_EQ(w.grad[w.start[p] + i], 0) << "the gradient is cleared in the same pass";
      }
    }
  }
};

TEST_F(RuleGoldenTest, SgdTakesTheStepsOfNumPy) {
  const std::vector<GoldenCase> cases = ReadGolden("sgd.txt");
  ASSERT_GE(cases.size(), 6u);
  for (const GoldenCase& golden : cases) RunCase(golden);
}

TEST_F(RuleGoldenTest, TheOtherRulesTakeTheStepsOfNumPy) {
  const std::vector<GoldenCase> cases = ReadGolden("rules.txt");
  ASSERT_GE(cases.size(), 7u);
  for (const GoldenCase& golden : cases) RunCase(golden);
}

TEST(RuleTest, LeavesTheGradientWhenAskedTo) {
  const SolverSpec spec = SolverFromText("type: \"SGD\" base_lr: 1");
  const auto device = MakeCpuDevice(1);
  float weight = 2, grad = 0.5f, state = 0;
  ParamSlice slice;
  slice.count = 1;
  slice.weight = &weight;
  slice.grad = &grad;
  slice.state[0] = &state;
  slice.rate = 1;
  slice.clear_grad = false;
  MakeRule(spec)->Step(*device, slice);
  EXPECT_EQ(weight, 1.5f);
  EXPECT_EQ(grad, 0.5f);
}

std::string Refusal(const std::string& solver) {
  const SolverSpec spec = SolverFromText(solver);
  try {
    MakeRule(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "accepted";
}

TEST(RuleTest, RefusesAnUnknownTypeNamingTheNearest) {
  const std::string text = Refusal("base_lr: 1\n  type: \"Nestrov\"");
  EXPECT_THAT(text, HasSubstr("solver.prototxt:2:3: unknown solver type 'Nestrov'."));
  EXPECT_THAT(text, HasSubstr("Did you mean 'Nesterov'?"));
  EXPECT_THAT(text, HasSubstr("SGD"));
}

TEST(RuleTest, RefusesMomentumWhereTheRuleHasNone) {
  EXPECT_THAT(Refusal("type: \"AdaGrad\"\nmomentum: 0.9"),
              HasSubstr("solver.prototxt:2:1: momentum is 0.9, but AdaGrad has none"));
  EXPECT_THAT(Refusal("type: \"RMSProp\" momentum: 0.9"), HasSubstr("RMSProp has none"));
}

TEST(RuleTest, RefusesADecayOutsideItsRange) {
  EXPECT_THAT(Refusal("type: \"RMSProp\" rms_decay: 1"),
              HasSubstr("rms_decay is 1; it must be at least 0 and below 1"));
}

TEST(L2NormTest, IsTheRootOfTheSumOfSquaresWhateverTheNumberOfThreads) {
  std::vector<float> values(100003);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 17) - 8;
    sum += values[i] * values[i];
  }
  float one = 0, two = 0;
  const float norm_one = L2Norm(*MakeCpuDevice(1), values, &one);
  const float norm_two = L2Norm(*MakeCpuDevice(2), values, &two);
  EXPECT_EQ(norm_one, norm_two);
  EXPECT_NEAR(norm_one, std::sqrt(sum), 1e-3 * std::sqrt(sum));
}

}  // namespace
}  // namespace trainer

// Compares ten steps of each rule with an independent implementation, and tests refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "gradient_stats.h"
#include "param_updater.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "trainer/solver/lr_schedule.h"
#include "update_rule.h"

namespace trainer {
namespace {

using testing::HasSubstr;

SolverSpec SolverFromText(const std::string& text) {
  SolverSpec spec;
  spec.file = "solver.prototxt";
  spec.text = ParseTextString(spec.file, text, &spec.proto);
  return spec;
}

// The two parameters of a golden case, adjacent in one array as in a ParamStore.
struct Weights {
  std::vector<size_t> start = {0};
  std::optional<OnDevice<float>> weight, grad;
  Param params[2];

  Weights(const Device& device, const GoldenCase& golden) {
    std::vector<float> all;
    for (int p = 0; p < 2; ++p) {
      const std::vector<float>& values = golden.Tensor(Join("start_", p)).values;
      all.insert(all.end(), values.begin(), values.end());
      start.push_back(all.size());
      params[p].shape = Shape{static_cast<int64_t>(values.size())};
      params[p].lr_mult = static_cast<float>(golden.Number(Join("lr_mult_", p)));
      params[p].decay_mult = static_cast<float>(golden.Number(Join("decay_mult_", p)));
    }
    weight.emplace(device, all);
    grad.emplace(device, all.size());
    for (size_t p = 0; p < 2; ++p) {
      params[p].weight = weight->data() + start[p];
      params[p].grad = grad->data() + start[p];
    }
  }
};

class RuleGoldenTest : public testing::Test {
 protected:
  void RunFile(const std::string& file, size_t least) {
    const std::vector<GoldenCase> cases = ReadGolden(file);
    EXPECT_GE(cases.size(), least);
    for (const GoldenCase& golden : cases) RunCase(golden);
  }

 private:
  static void RunCase(const GoldenCase& golden) {
    SCOPED_TRACE(golden.name);
    const SolverSpec spec = SolverFromText(golden.Text("solver"));
    const auto device = MakeTestDevice(1);
    Weights w(*device, golden);
    ParamUpdater update(spec, MakeUpdateRule(spec), *device, {&w.params[0], &w.params[1]},
                        w.grad->span());
    for (int step = 0; step < 10; ++step) {
      SetGradients(golden, step, w);
      const std::string note = update.Apply(LrSchedule(spec.proto).At(step));
      EXPECT_TRUE(note.empty() || spec.proto.has_clip_gradients()) << note;
      ExpectAfter(golden, step, w);
    }
  }

  static void SetGradients(const GoldenCase& golden, int step, const Weights& w) {
    std::vector<float> grad(w.grad->size());
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float>& sums = golden.Tensor(Join("gradient_sums_", p)).values;
      const size_t count = w.start[p + 1] - w.start[p];
      for (size_t i = 0; i < count; ++i) {
        grad[w.start[p] + i] = sums[static_cast<size_t>(step) * count + i];
      }
    }
    w.grad->Write(grad);
  }

  static void ExpectAfter(const GoldenCase& golden, int step, const Weights& w) {
    const std::vector<float> weight = w.weight->Read(), grad = w.grad->Read();
    for (size_t p = 0; p < 2; ++p) {
      const std::vector<float>& after = golden.Tensor(Join("after_", p)).values;
      const size_t count = w.start[p + 1] - w.start[p];
      for (size_t i = 0; i < count; ++i) {
        const float expected = after[static_cast<size_t>(step) * count + i];
        EXPECT_NEAR(weight[w.start[p] + i], expected, 1e-5 * std::max(1.0f, std::fabs(expected)))
            << "step " << step << " parameter " << p << " element " << i;
        EXPECT_EQ(grad[w.start[p] + i], 0) << "the gradient is cleared in the same pass";
      }
    }
  }
};

TEST_F(RuleGoldenTest, SgdTakesTheStepsOfNumPy) { RunFile("rules/sgd.txt", 8); }

TEST_F(RuleGoldenTest, TheOtherRulesTakeTheStepsOfNumPy) { RunFile("rules/rules.txt", 7); }

TEST_F(RuleGoldenTest, EveryRuleDecaysClipsAndAveragesAsNumPyDoes) {
  RunFile("rules/pipeline.txt", 16);
}

TEST_F(RuleGoldenTest, RulesAndSchedulesBeyondCaffesTakeTheStepsOfPyTorchAndNumPy) {
  RunFile("rules/new_rules.txt", 18);
}

TEST(WeightUpdateTest, SaysHowItClipped) {
  const SolverSpec spec =
      SolverFromText("type: \"SGD\" base_lr: 1 clip_gradients: 2.5 iter_size: 2");
  const auto device = MakeTestDevice(1);
  const OnDevice<float> weight(*device, std::vector<float>{1, 1});
  const OnDevice<float> grad(*device, std::vector<float>{3, 4});
  Param param;
  param.shape = Shape{2};
  param.weight = weight.data();
  param.grad = grad.data();
  ParamUpdater update(spec, MakeUpdateRule(spec), *device, {&param}, grad.span());
  EXPECT_EQ(update.Apply(Hyperparams{.iter = 0, .lr = 1}),
            "Gradient clipping: scaling down gradients (L2 norm 5 > 2.5) by scale factor 0.5");
  EXPECT_THAT(weight.Read(), testing::ElementsAre(0.25f, 0));  // the sum is clipped, then halved
  grad.Write(std::vector<float>{1, 1});
  EXPECT_EQ(update.Apply(Hyperparams{.iter = 1, .lr = 1}), "");
}

TEST(WeightUpdateTest, ClipsEachGradientOfTheMean) {
  const SolverSpec spec = SolverFromText("type: \"SGD\" base_lr: 1 clip_value: 1.5 iter_size: 2");
  const auto device = MakeTestDevice(1);
  const OnDevice<float> weight(*device, std::vector<float>{1, 1, 1, 1});
  const OnDevice<float> grad(*device, std::vector<float>{3, 8, -8, NAN});
  Param param;
  param.shape = Shape{4};
  param.weight = weight.data();
  param.grad = grad.data();
  ParamUpdater update(spec, MakeUpdateRule(spec), *device, {&param}, grad.span());
  EXPECT_EQ(update.Apply(Hyperparams{.iter = 0, .lr = 1}), "");
  EXPECT_THAT(weight.Read(), testing::ElementsAre(-0.5f, -0.5f, 2.5f, testing::IsNan()));
}

TEST(RuleTest, LeavesTheGradientWhenAskedTo) {
  const SolverSpec spec = SolverFromText("type: \"SGD\" base_lr: 1");
  const auto device = MakeTestDevice(1);
  const OnDevice<float> weight(*device, std::vector<float>{2}), state(*device, 1);
  const OnDevice<float> grad(*device, std::vector<float>{0.5f});
  const OnDevice<ParamMultipliers> multipliers(*device, 1);
  const TensorList parameters(*device, {{1, {weight.data(), grad.data(), state.data()}}});
  const OnDevice<DeviceHyperparams> now(*device,
                                        std::vector<DeviceHyperparams>{{.values = {.lr = 1}}});
  UpdateArgs args;
  args.hyper = now.data();
  args.clear_grad = false;
  args.multipliers = multipliers.data();
  MakeUpdateRule(spec)->Step(*device, {parameters, 0, 1, args});
  EXPECT_THAT(weight.Read(), testing::ElementsAre(1.5f));
  EXPECT_THAT(grad.Read(), testing::ElementsAre(0.5f));
}

// A weight that learns from iteration unfreeze_at on takes the same steps as a weight that learns
// from the start, as in PyTorch when a parameter's first gradient comes late.
TEST(RuleTest, CountsTheUpdatesOfAnUnfrozenWeightFromUnfreezeAt) {
  for (const char* type : {"Adam", "AdamW"}) {
    const auto steps = [&](int unfreeze_at, bool was_frozen) {
      const SolverSpec spec = SolverFromText(
          Join("type: '", type,
               "' base_lr: 1 momentum: 0.9 momentum2: 0.999 unfreeze_at: ", unfreeze_at));
      const auto device = MakeTestDevice(1);
      const OnDevice<float> weight(*device, std::vector<float>{1});
      const OnDevice<float> grad(*device, std::vector<float>{0});
      Param param;
      param.shape = Shape{1};
      param.weight = weight.data();
      param.grad = grad.data();
      param.was_frozen = was_frozen;
      ParamUpdater update(spec, MakeUpdateRule(spec), *device, {&param}, grad.span());
      std::vector<float> weights;
      for (int i = 0; i < 4; ++i) {
        grad.Write(std::vector<float>{1.0f + static_cast<float>(i)});
        update.Apply(Hyperparams{.iter = unfreeze_at + i, .lr = 0.01f, .momentum = 0.9f});
        weights.push_back(weight.Read()[0]);
      }
      return weights;
    };
    const std::vector<float> fresh = steps(0, false);
    EXPECT_THAT(steps(1000, true), testing::ElementsAreArray(fresh)) << type;
    EXPECT_NEAR(fresh[0], 0.99f, 1e-5f) << "a first step of the learning rate";
    EXPECT_LT(steps(1000, false)[0], 0.98f) << "which would be two and a half times as long";
  }
}

std::string Refusal(const std::string& solver) {
  const SolverSpec spec = SolverFromText(solver);
  try {
    MakeUpdateRule(spec);
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
              HasSubstr("momentum is 0.9, but AdaGrad has no momentum"));
  EXPECT_THAT(Refusal("type: \"RMSProp\" momentum: 0.9"), HasSubstr("RMSProp has no momentum"));
}

TEST(RuleTest, RefusesAMomentumPolicyWhereTheRuleHasNoMomentum) {
  EXPECT_THAT(Refusal("type: \"AdaGrad\" momentum_policy: \"poly\""),
              HasSubstr("momentum_policy is 'poly', but AdaGrad has no momentum"));
}

TEST(RuleTest, RefusesL1WhereTheDecayIsTheRulesOwn) {
  EXPECT_THAT(Refusal("type: \"AdamW\"\nregularization_type: \"L1\""),
              HasSubstr("solver.prototxt:2:1: regularization_type is L1, but AdamW supports L2 "
                        "only"));
  EXPECT_THAT(Refusal("type: \"LARS\" regularization_type: \"L1\""),
              HasSubstr("but LARS supports L2 only"));
}

TEST(RuleTest, RefusesNumbersThatLarsCannotUse) {
  EXPECT_THAT(Refusal("type: \"LARS\" trust_coefficient: 0"),
              HasSubstr("trust_coefficient is 0; it must be above 0"));
  EXPECT_THAT(Refusal("type: \"LARS\" larc: true"), HasSubstr("both scale the learning rate by the "
                                                              "norms"));
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
  std::vector<float> norms;
  for (const int threads : {1, 2}) {
    const auto device = MakeTestDevice(threads);
    const OnDevice<float> x(*device, values), scratch(*device, 1);
    norms.push_back(L2Norm(*device, x.span(), scratch.data()));
  }
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_NEAR(norms[0], std::sqrt(sum), 1e-3 * std::sqrt(sum));
}

}  // namespace
}  // namespace trainer

// Adds an optimizer that evaluates each batch twice, in a single file.

#include "trainer/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "param_updater.h"
#include "solver/small_run.h"
#include "support/error_of.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// Implements sharpness-aware minimisation over SGD with momentum: SGD's step from w uses the
// gradient at w + radius g / |g|, where g is the gradient at w on the same batch. The radius
// shrinks with each step, so a snapshot must store more than arrays. Source: Foret, Kleiner, Mobahi
// and Neyshabur, arXiv:2010.01412, algorithm 1.
struct Climb {
  float scale;
  HD void operator()(float& w, float& saved, float g) const {
    saved = w;
    w += scale * g;
  }
};
struct Return {
  HD void operator()(float& w, float saved) const { w = saved; }
};

class TestSam final : public Optimizer {
 public:
  explicit TestSam(const SolverSpec& spec) : spec_(spec) {}
  int StatesPerWeight() const override { return 1; }
  bool Reevaluates() const override { return true; }

  void Prepare(Objective& objective, NoteHandler) override {
    objective_ = &objective;
    update_.emplace(spec_, UpdateRuleRegistry::Get().Make("SGD", spec_), objective.device(),
                    objective.params(), objective.Gradients());
    saved_.emplace(objective.device(), objective.Gradients().size());
  }

  void ComputeGradients(const Hyperparams&, bool) override {
    losses.clear();
    losses.push_back(objective_->Evaluate(Pass::Batch::kNext));
  }
  float TakeLoss() override { return losses[0]; }

  void Update(const Hyperparams& hyper) override {
    Objective& objective = *objective_;
    const std::span<float> gradients = objective.Gradients();
    const auto count = static_cast<int64_t>(gradients.size());
    float* const weights = objective.Weights().data();
    trainer::Update(objective.device(), Climb{radius_ / objective.Norm(gradients)}, count, weights,
                    saved_->data(), gradients.data());
    losses.push_back(objective.Evaluate(Pass::Batch::kSame));
    trainer::Update(objective.device(), Return{}, count, weights, saved_->data());
    losses.push_back(objective.Loss(Pass::Batch::kSame));
    update_->Apply(hyper);
    objective.GradientsAreZero();
    radius_ *= 0.875f;
  }

  const std::vector<std::vector<float*>>& state_arrays() const override {
    return update_->state_arrays();
  }
  std::string SaveRecord() const override {
    return {reinterpret_cast<const char*>(&radius_), sizeof(radius_)};
  }
  void LoadRecord(const std::string& state) override {
    ASSERT_EQ(state.size(), sizeof(radius_));
    std::memcpy(&radius_, state.data(), sizeof(radius_));
  }
  size_t Bytes() const override { return update_->Bytes(); }

  static inline std::vector<float> losses;  // one per evaluation of the last step

 private:
  const SolverSpec& spec_;
  Objective* objective_ = nullptr;
  std::optional<ParamUpdater> update_;
  std::optional<DeviceFloats> saved_;
  float radius_ = 0.5f;
};

const RegisterOptimizer<TestSam> kTestSam("TestSam");

const std::string kStepRuleFields =
    "type: \"TestSam\" base_lr: 0.1 lr_policy: \"inv\" gamma: 0.01 power: 0.75 momentum: 0.9 "
    "weight_decay: 0.001 display: 1 average_loss: 3 test_interval: 7 test_iter: 2 ";

TEST(StepRuleTest, TwoEvaluationsOfABatchResumeBitForBit) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const std::string fields = Join(kStepRuleFields, "snapshot_format: ", format, " ");
    SmallRun whole(fields + "max_iter: 20 ");
    whole.Solve();
    SmallRun first(fields + "max_iter: 10 ");
    first.Solve();
    SolverOptions options;
    const std::string end = format == std::string("HDF5") ? ".h5" : "";
    options.snapshot = first.PathOf("s_iter_10.solverstate" + end);
    SmallRun second(fields + "max_iter: 20 ", SmallNet(), options, first.folder_path);
    second.Solve();
    EXPECT_THAT(second.Weights(), ElementsAreArray(whole.Weights()));
    EXPECT_EQ(ReadText(second.PathOf("s_iter_20.caffemodel" + end)),
              ReadText(whole.PathOf("s_iter_20.caffemodel" + end)));
    const std::vector<float>& losses = whole.observer.losses;
    EXPECT_THAT(second.observer.losses,
                ElementsAreArray(std::vector<float>(losses.begin() + 10, losses.end())));
  }
}

// The net has dropout, and each evaluation must use the mask of the first one.
TEST(StepRuleTest, SeesOneFunctionOfTheWeightsInAStep) {
  SmallRun run(kStepRuleFields + "max_iter: 20 ");
  for (int step = 0; step < 5; ++step) {
    const float loss = run.solver->Step();
    ASSERT_EQ(TestSam::losses.size(), 3u);
    EXPECT_EQ(TestSam::losses[0], loss);
    EXPECT_GT(TestSam::losses[1], loss) << "the second is up the gradient";
    EXPECT_EQ(TestSam::losses[2], loss) << "the weights are back";
    EXPECT_EQ(run.solver->train_net().passes(), static_cast<uint32_t>(step + 1));
  }
}

TEST(StepRuleTest, LearnsOtherWeightsThanItsUpdateRuleAlone) {
  std::string plain = kStepRuleFields;
  plain.replace(plain.find("TestSam"), 7, "SGD");
  SmallRun sam(kStepRuleFields + "max_iter: 5 "), sgd(plain + "max_iter: 5 ");
  sam.Solve();
  sgd.Solve();
  EXPECT_EQ(sam.observer.losses[0], sgd.observer.losses[0]);
  EXPECT_NE(sam.Weights(), sgd.Weights());
}

TEST(StepRuleTest, RefusesABatchOfSeveralPassesWhereItIsEvaluatedAgain) {
  const auto [code, text] =
      ErrorOf([] { SmallRun(kStepRuleFields + "max_iter: 5\niter_size: 2 "); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr(":5:1: iter_size is 2, but TestSam evaluates each batch more than "
                              "once"));
}

TEST(StepRuleTest, RefusesABatchOfSeveralPartsWhereItIsEvaluatedAgain) {
  const auto [code, text] =
      ErrorOf([] { SmallRun(kStepRuleFields + "max_iter: 5\nvirtual_ranks: 2 "); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr(":5:1: virtual_ranks is 2, but TestSam evaluates each batch more "
                              "than once"));
}

TEST(StepRuleTest, AnUnknownTypeIsToldTheNearestOfRulesAndStepRules) {
  const auto refusal = [](const std::string& type) {
    return ErrorOf(
               [&] { SmallRun("type: '" + type + "' base_lr: 1 lr_policy: 'fixed' max_iter: 1 "); })
        .second;
  };
  EXPECT_THAT(refusal("TestSan"), HasSubstr("Did you mean 'TestSam'?"));
  EXPECT_THAT(refusal("Adan"), HasSubstr("Did you mean 'Adam'?"));
}

TEST(StepRuleTest, RefusesTheSnapshotOfAnotherRule) {
  SmallRun first(kStepRuleFields + "max_iter: 2 ");
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_2.solverstate");
  std::string sgd = kStepRuleFields;
  sgd.replace(sgd.find("TestSam"), 7, "SGD");
  const auto [code, text] = ErrorOf([&] { SmallRun(sgd + "max_iter: 4 ", SmallNet(), options); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text, HasSubstr("the snapshot is from a solver of type 'TestSam'"));
}

}  // namespace
}  // namespace trainer

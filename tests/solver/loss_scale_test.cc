// Runs whose loss is scaled.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string kLossScaleFields =
    "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.001 display: 2 ";

TEST(LossScaleRunTest, APowerOfTwoChangesNoBitOfWhatARunLearns) {
  for (const std::string more : {"", "iter_size: 3 ", "type: 'Adam' ", "clip_gradients: 0.05 ",
                                 "clip_value: 0.01 ", "ema_decay: 0.9 "}) {
    SmallRun plain(kLossScaleFields + "max_iter: 9 " + more);
    SmallRun fixed(kLossScaleFields + "max_iter: 9 loss_scale: 1024 " + more);
    SmallRun found(kLossScaleFields + "max_iter: 9 loss_scale: 0 loss_scale_window: 3 " + more);
    for (SmallRun* run : {&plain, &fixed, &found}) run->Solve();
    for (SmallRun* run : {&fixed, &found}) {
      EXPECT_EQ(run->observer.losses, plain.observer.losses) << more;
      EXPECT_EQ(run->observer.notes, plain.observer.notes) << more;
      EXPECT_TRUE(run->Weights() == plain.Weights()) << more;
    }
  }
}

// The search begins where gradients overflow even in 32 bits.
const std::string kOverflows =
    "global_grad_scale: 1e24 global_grad_scale_adaptive: true " + SmallNet();
const std::string kSearch = kLossScaleFields + "loss_scale: 0 loss_scale_window: 4 snapshot: 10 ";

TEST(LossScaleRunTest, ASearchSkipsAndGoesOnAndResumesBitForBit) {
  const LogCollector log;
  SmallRun whole(kSearch + "max_iter: 40 ", kOverflows);
  whole.Solve();
  EXPECT_THAT(whole.observer.notes,
              Contains(HasSubstr("Iteration 0: gradients are not finite (NaN or infinity), the "
                                 "update is skipped; loss scale 5e+23, 1 updates skipped so far")));
  EXPECT_EQ(whole.observer.losses[0], whole.observer.losses[0]);
  EXPECT_LT(whole.observer.losses.back(), whole.observer.losses.front()) << "it learns";
  for (const int iter : {10, 30}) {
    SolverOptions options;
    options.snapshot = whole.PathOf(Join("s_iter_", iter, ".solverstate"));
    SmallRun rest(kSearch + "max_iter: 40 ", kOverflows, options, whole.folder_path);
    rest.Solve();
    EXPECT_TRUE(rest.Weights() == whole.Weights()) << iter;
    EXPECT_EQ(rest.observer.losses.back(), whole.observer.losses.back());
  }
}

TEST(LossScaleRunTest, ADisplayTellsTheFactorAndHowManyStepsWereSkipped) {
  class Scales final : public TrainingObserver {
   public:
    void OnIteration(const IterationReport& e) override {
      if (!e.after_last) told.push_back({e.loss_scale, static_cast<float>(e.skipped_steps)});
    }
    std::vector<std::pair<float, float>> told;
  };
  SmallRun run(kSearch + "max_iter: 4 ", kOverflows);
  Scales scales;
  Solver solver(run.spec, {}, *run.device, scales);
  solver.Solve();
  EXPECT_THAT(scales.told, testing::ElementsAre(std::pair(1e24f, 0.0f), std::pair(2.5e23f, 2.0f)));
  SmallRun plain(kLossScaleFields + "max_iter: 4 ");
  Scales none;
  Solver(plain.spec, {}, *plain.device, none).Solve();
  EXPECT_THAT(none.told, Contains(std::pair(0.0f, 0.0f)));
}

TEST(LossScaleRunTest, WeightsAreThoseOfTheStartWhileAllIsSkipped) {
  SmallRun run(kLossScaleFields + "max_iter: 60 loss_scale: 1e38 ");
  const std::vector<float> start = run.Weights();
  const auto [code, message] = ErrorOf([&] { run.Solve(); });
  EXPECT_EQ(code, ErrorCode::kDiverged);
  EXPECT_THAT(message, HasSubstr("1e+38; give a smaller loss_scale, or"));
  EXPECT_TRUE(run.Weights() == start);
}

TEST(LossScaleRunTest, RefusesFactorsAndWindowsThatMakeNoSense) {
  const auto refusal = [](const std::string& fields) {
    return ErrorOf([&] { SmallRun(kLossScaleFields + "max_iter: 1 " + fields); }).second;
  };
  EXPECT_THAT(refusal("loss_scale: -2 "),
              HasSubstr("loss_scale is -2; it must be a factor above 0"));
  EXPECT_THAT(refusal("loss_scale: inf "), HasSubstr("loss_scale is inf"));
  EXPECT_THAT(refusal("loss_scale_window: 0 "),
              HasSubstr("loss_scale_window is 0; it must be at least 1"));
}

}  // namespace
}  // namespace trainer

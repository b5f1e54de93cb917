#include "run_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// One rank, at iteration 1 of 9.
class RunControlTest : public testing::Test {
 protected:
  SmallRun files_{"base_lr: 0.1 lr_policy: \"fixed\" max_iter: 9 snapshot_every: \"1s\" "};
  std::unique_ptr<Strategy> strategy_ = MakeStrategy(files_.spec, 1);
  SolverContext run_{.spec = files_.spec,
                     .proto = files_.spec.proto,
                     .device = *files_.device,
                     .observer = files_.observer,
                     .strategy = *strategy_,
                     .pipeline = nullptr,
                     .rank = {},
                     .world = nullptr,
                     .group = nullptr,
                     .iter = 1};
};

TEST_F(RunControlTest, StopsAtTheDeadlineAndSaysSoOnce) {
  SolverOptions options;
  options.end = steady_clock::now() + seconds(1);  // less than a snapshot needs
  RunControl control(run_, options);
  control.Begin();
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_EQ(control.AfterStep(0), Request::kStop);
  EXPECT_EQ(control.AfterStep(0), Request::kStop);
  EXPECT_TRUE(control.ShouldStop());
  EXPECT_TRUE(control.TimeWasUp());
  EXPECT_EQ(files_.observer.notes.size(), 1u);
}

TEST_F(RunControlTest, DoesNotStopARunThatIsDone) {
  SolverOptions options;
  options.end = steady_clock::now();
  RunControl control(run_, options);
  control.Begin();
  run_.iter = 9;
  EXPECT_EQ(control.AfterStep(0), Request::kNone);
}

TEST_F(RunControlTest, RequestsASnapshotWhenTheLastOneIsTooOld) {
  RunControl control(run_, {});  // as if the last one was made when the machine started
  EXPECT_EQ(control.AfterStep(0), Request::kSnapshot);
  control.NoteSnapshot();
  EXPECT_EQ(control.AfterStep(0), Request::kNone);
}

}  // namespace
}  // namespace trainer

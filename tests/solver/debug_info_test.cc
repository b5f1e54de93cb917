#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "support/log_collector.h"

namespace trainer {
namespace {

// Returns the number of lines that begin with `start`.
int64_t Lines(const LogCollector& collected, const std::string& start) {
  return std::ranges::count_if(collected.lines,
                               [&](const std::string& line) { return line.starts_with(start); });
}

constexpr char kDebugInfoFields[] =
    "base_lr: 0.1 lr_policy: 'fixed' max_iter: 5 display: 2 test_iter: 2 test_interval: 3 "
    "snapshot_after_train: false ";

TEST(SolverDebugInfoTest, TrainingLogsItWhenIterationsAreDisplayedAndTestsAlways) {
  SmallRun run(std::string(kDebugInfoFields) + "debug_info: true");
  LogCollector collected;
  run.Solve();
  // The run displays iterations 0, 2 and 4.
  EXPECT_EQ(Lines(collected, "    [Backward] All net params"), 3);
  const int tests = 2 * 2;  // at iterations 0 and 3
  const auto outputs = static_cast<int64_t>(run.solver->test_net(0).graph().nodes.size());
  EXPECT_GE(Lines(collected, "    [Forward]"), (3 + tests) * outputs);
}

TEST(SolverDebugInfoTest, TheNetsOwnFieldAsksForItToo) {
  SmallRun run(kDebugInfoFields, "debug_info: true\n" + SmallNet());
  LogCollector collected;
  run.Solve();
  EXPECT_EQ(Lines(collected, "    [Backward] All net params"), 3);
}

TEST(SolverDebugInfoTest, ChangesNoNumber) {
  SmallRun plain(kDebugInfoFields), verbose(std::string(kDebugInfoFields) + "debug_info: true");
  LogCollector collected;
  plain.Solve();
  EXPECT_EQ(Lines(collected, "    ["), 0);
  verbose.Solve();
  EXPECT_EQ(plain.Weights(), verbose.Weights());
}

}  // namespace
}  // namespace trainer

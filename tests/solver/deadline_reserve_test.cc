#include "deadline_reserve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TimeBudgetTest : public testing::Test {
 protected:
  // Returns the most seconds before kEnd at which `budget` is up.
  static double Reserve(const DeadlineReserve& budget, int snapshots = 1, bool in_test = false) {
    for (int tenths = 100000; tenths > 0; --tenths) {
      if (budget.IsUp(kEnd - milliseconds(100 * tenths), snapshots, in_test)) return tenths / 10.0;
    }
    return 0;
  }
  static constexpr DeadlineReserve::Time kEnd{hours(1000)};
};

TEST_F(TimeBudgetTest, WithoutAnEndItIsNeverUp) {
  const DeadlineReserve budget(std::nullopt, 1);
  EXPECT_FALSE(budget.IsUp(kEnd + hours(9), 1, false));
  EXPECT_EQ(budget.Describe(kEnd), "");
}

TEST_F(TimeBudgetTest, EstimatesTheFirstSnapshotByItsBytes) {
  const DeadlineReserve small(kEnd, 1000), large(kEnd, 500'000'000);
  EXPECT_NEAR(Reserve(small), 1 * 1.25 + 2, 0.11);
  EXPECT_NEAR(Reserve(large), 11 * 1.25 + 2, 0.11);
}

TEST_F(TimeBudgetTest, KeepsTheLongestIterationTestAndSnapshot) {
  DeadlineReserve budget(kEnd, 500'000'000);
  for (const double time : {1.0, 3.0, 2.0}) {
    budget.NoteIteration(time);
    budget.NoteTest(10 * time);
    budget.NoteSnapshot(2 * time);
  }
  EXPECT_NEAR(Reserve(budget), (3 + 30 + 6) * 1.25 + 2, 0.11);
  EXPECT_NEAR(Reserve(budget, 2), (3 + 30 + 12) * 1.25 + 2, 0.11) << "one is being written";
  EXPECT_NEAR(Reserve(budget, 1, true), 6 * 1.25 + 2, 0.11) << "a test is cut short";
  EXPECT_EQ(budget.Describe(kEnd - seconds(12)),
            "12 s are left; the longest iteration took 3 s, a test 30 s, a snapshot 6 s");
}

TEST_F(TimeBudgetTest, LeavesTimeForOneSnapshotAfterTheLastTry) {
  DeadlineReserve budget(kEnd, 0);
  budget.NoteSnapshot(4);
  EXPECT_EQ(budget.LastTry(), kEnd - seconds(4 + 1 + 2));
  EXPECT_EQ(DeadlineReserve(std::nullopt, 0).LastTry(), std::nullopt);
}

TEST_F(TimeBudgetTest, ForgetsALongIterationOfLongAgo) {
  DeadlineReserve budget(kEnd, 0);
  budget.NoteIteration(3600);
  EXPECT_GT(Reserve(budget), 3600);
  for (int i = 0; i < 64; ++i) budget.NoteIteration(0.5);
  EXPECT_LT(Reserve(budget), 5);
}

}  // namespace
}  // namespace trainer

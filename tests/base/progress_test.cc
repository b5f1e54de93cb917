#include "trainer/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/log_collector.h"

namespace trainer {
namespace {

TEST(ProgressTest, SaysHowMuchHowFastAndHowLong) {
  EXPECT_EQ(ProgressText("records", {1000, 5000, 0, 4}),
            "1000 of 5000 records, 250 records/s, 16 s left");
  EXPECT_EQ(ProgressText("records", {1000, 5000, 50000000, 4}),
            "1000 of 5000 records, 250 records/s, 12.5 MB/s, 16 s left");
  EXPECT_EQ(ProgressText("files", {30, 3600, 0, 60}), "30 of 3600 files, 0.50 files/s, 2 h left");
  EXPECT_EQ(ProgressText("files", {30, 240, 0, 60}), "30 of 240 files, 0.50 files/s, 7 min left");
}

TEST(ProgressTest, NeedsNoTotalAndNothingDone) {
  EXPECT_EQ(ProgressText("records", {1000, 0, 0, 4}), "1000 records, 250 records/s");
  EXPECT_EQ(ProgressText("records", {0, 70, 0, 4}), "0 of 70 records");
  EXPECT_EQ(ProgressText("records", {70, 70, 0, 7}), "70 of 70 records, 10.0 records/s");
}

TEST(ProgressTest, ShortWorkLogsNothing) {
  const LogCollector log;
  Progress progress("Writing", "records", 1000);
  for (int i = 0; i < 1000; ++i) progress.Add(1, 10);
  EXPECT_THAT(log.lines, testing::IsEmpty());
}

}  // namespace
}  // namespace trainer

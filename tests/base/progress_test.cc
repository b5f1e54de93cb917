#include "trainer/base/log/progress.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/log_collector.h"
#include "support/temp_folder.h"

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

TEST(ProgressTest, CountsNoWorkThatAnEarlierStartDid) {
  // 2 of 8 runs were done before the start; 2 took 40 s, and the third began 5 s ago.
  EXPECT_EQ(ProgressText("runs", {4, 8, 0, 40, 2, 5}), "4 of 8 runs, 0.05 runs/s, 75 s left");
  EXPECT_EQ(ProgressText("runs", {2, 8, 0, 0, 2, 5}), "2 of 8 runs, 5 s so far");
  EXPECT_EQ(ProgressText("batches", {3, 0, 0, 20, 0, 10, 60}),
            "3 batches, 0.15 batches/s, at most 30 s left");
}

TEST(ProgressTest, TheLineFitsTheTerminal) {
  const ProgressState state = {1000, 5000, 50000000, 4};
  EXPECT_EQ(ProgressLine("Writing a", "records", state, 79),
            "Writing a: 1000 of 5000 records, 250 records/s, 12.5 MB/s, 16 s left");
  EXPECT_EQ(ProgressLine("Writing a", "records", state, 60),
            "Writing a: 1000 of 5000 records, 16 s left");
  EXPECT_EQ(ProgressLine("Writing a/long/path", "records", state, 43),
            "Writing...: 1000 of 5000 records, 16 s left");
  EXPECT_EQ(ProgressLine("Writing", "records", state, 12), "1000 of 5000");
}

TEST(ProgressTest, OnATerminalTheLogsLinesAreHiddenAndWarningsStayAbove) {
  const TempFolder folder;
  const std::string path = folder / "screen";
  TerminalSettings terminal;
  terminal.fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  {
    Progress progress("Reading", "records", 10, terminal);
    EXPECT_TRUE(StatusLine::IsShown());
    Progress inner("Copying", "files", 10);  // shows nothing
    inner.Add(1);
    LOG(INFO) << "a line of the log";
    LOG(WARNING) << "the disk is slow";
    progress.Add(5);
    progress.Say("run 1: done");
  }
  EXPECT_FALSE(StatusLine::IsShown());
  close(terminal.fd);
  const std::string screen = ReadText(path);
  EXPECT_THAT(screen, testing::HasSubstr("\033[33mwarning: the disk is slow\033[0m\n"));
  EXPECT_THAT(screen, testing::HasSubstr("run 1: done\n"));
  EXPECT_THAT(screen, testing::Not(testing::HasSubstr("a line of the log")));
  EXPECT_THAT(screen, testing::Not(testing::HasSubstr("Copying")));
}

TEST(ProgressTest, ShortWorkLogsNothing) {
  const LogCollector log;
  Progress progress("Writing", "records", 1000);
  for (int i = 0; i < 1000; ++i) progress.Add(1, 10);
  EXPECT_THAT(log.lines, testing::IsEmpty());
}

}  // namespace
}  // namespace trainer

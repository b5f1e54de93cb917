// --bad_records: runs on records that cannot be decoded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "in_process.h"
#include "support/records.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class BadRecordsRunTest : public testing::Test {
 protected:
  // Cuts records 3, 4 and 50 of the hundred to half of their size.
  BadRecordsRunTest() {
    for (const int index : {3, 4, 50}) {
      const std::string good = DigitOf(1).SerializeAsString();
      PutRecord(job_, "data/train_lmdb", index, good.substr(0, good.size() / 2));
    }
    job_.Write();
  }
  static std::ptrdiff_t Skipped(const Outcome& outcome) {
    std::ptrdiff_t count = 0;
    const std::string part = "skipped record number ";
    for (size_t at = outcome.err.find(part); at != std::string::npos;
         at = outcome.err.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  std::string Weights() const { return ReadText(job_.folder() / "snap_iter_20.caffemodel"); }

  Job job_;
};

TEST_F(BadRecordsRunTest, StopIsTheDefault) {
  ExpectRefused(job_, job_.Train(), 65, "data/train_lmdb: record '00000003'", "is not a Datum");
}

TEST_F(BadRecordsRunTest, SkippedOnesAreNamedAndTheRunEndsWell) {
  const Outcome outcome = job_.Train({"--bad_records=skip=3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("skipped record number 3 and used the next good one"),
                                 HasSubstr("record '00000004'"), HasSubstr("record '00000050'")));
  EXPECT_GE(Skipped(outcome), 9);  // 320 records are more than three epochs
}

TEST_F(BadRecordsRunTest, MoreThanAllowedInAnEpochEndTheRun) {
  const Outcome outcome = job_.Train({"--bad_records=skip=2"});
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_THAT(
      outcome.Errors(),
      Contains(AllOf(HasSubstr("data/train_lmdb: 3 bad records in one epoch"), HasSubstr("skip=2"),
                     HasSubstr("repair or remove them, or allow more"))));
}

TEST_F(BadRecordsRunTest, AResumeGoesOnWithTheSameRecordsAndTheSameCount) {
  ASSERT_EQ(job_.Train({"--bad_records=skip=3"}).exit_code, 0);
  const std::string whole = Weights();
  std::filesystem::remove(job_.folder() / "snap_iter_20.caffemodel");
  const Outcome resumed =
      job_.Train({"--bad_records=skip=3", "--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Weights(), whole);
  // Two of the epoch's three bad records come before the snapshot of iteration 2.
  Job& job = job_;
  job.solver =
      Edited(Edited(job.solver, "snapshot: 10", "snapshot: 2"), "max_iter: 20", "max_iter: 2");
  job.Write();
  ASSERT_EQ(job.Train({"--bad_records=skip=2"}).exit_code, 0);
  job.solver = Edited(job.solver, "max_iter: 2\n", "max_iter: 20\n");
  job.Write();
  const Outcome more = job.Train({"--bad_records=skip=2", "--snapshot=snap_iter_2.solverstate"});
  EXPECT_EQ(more.exit_code, 65) << more.err;
  EXPECT_THAT(more.err, HasSubstr("3 bad records in one epoch"));
}

TEST_F(BadRecordsRunTest, RanksSkipTheSameRecordsAndCountThemTogether) {
  const Outcome two = job_.TrainAsProcess({"--bad_records=skip=3", "--ranks=2", "--global_batch"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  const Outcome few = job_.TrainAsProcess({"--bad_records=skip=2", "--ranks=2", "--global_batch"});
  EXPECT_EQ(few.exit_code, 65) << few.err;
  EXPECT_THAT(few.err, HasSubstr("3 bad records in one epoch"));
}

TEST_F(BadRecordsRunTest, TestSkipsThemToo) {
  ASSERT_EQ(job_.Train({"--bad_records=skip=3"}).exit_code, 0);
  const std::string good = DigitOf(1).SerializeAsString();
  PutRecord(job_, "data/test_lmdb", 7, good.substr(0, 100));
  const auto test = [&](const std::string& flag) {
    std::vector<std::string> command = {"test", "--model=net.prototxt",
                                        "--weights=snap_iter_20.caffemodel", "--iterations=2"};
    if (!flag.empty()) command.push_back(flag);
    return RunHere(command, job_.options());
  };
  EXPECT_EQ(test("").exit_code, 65);
  EXPECT_EQ(test("--bad_records=skip=0").exit_code, 65);
  const Outcome skipped = test("--bad_records=skip=1");
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("skipped record number 7"));
}

TEST_F(BadRecordsRunTest, AFlagThatSaysNothingIsRefused) {
  for (const char* value : {"go", "skip", "skip=", "skip=x", "skip=-1", "skip=99999999999"}) {
    const Outcome outcome = job_.Train({std::string("--bad_records=") + value});
    EXPECT_EQ(outcome.exit_code, 64) << value;
    EXPECT_THAT(outcome.err, HasSubstr("give stop, or skip=N"));
  }
}

// The run waits for batches between steps: a bad record of the next step must not come first.
TEST(BadRecordRunTest, ASnapshotThatIsDueBeforeABadRecordIsWritten) {
  Job job;
  PutRecord(job, "data/train_lmdb", 50, "garbage");
  job.solver = Edited(job.solver, "snapshot: 10", "snapshot: 3");
  const Outcome outcome = job.Train();  // 48 records are three batches
  EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
  EXPECT_EQ(job.Files("snap_iter_3.solverstate").size(), 1u);
}

}  // namespace
}  // namespace trainer

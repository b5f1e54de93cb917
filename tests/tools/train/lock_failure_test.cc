// Database locks that fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string TextOfLockFailure(int error) { return std::generic_category().message(error); }

class LockTestLockFailure : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, LockTestLockFailure,
                         testing::Values(EACCES, EROFS, ENOLCK, ENOSYS, EAGAIN),
                         [](const auto& one) { return Join("Error", one.param); });

// Returns options for runs in which the lock of an LMDB fails with error `lock`.
RunOptions OptionsWithLock(const Job& job, const std::string& lock) {
  RunOptions options = job.options();
  options.env.push_back("LD_PRELOAD=" TRAINER_FAULTY_IO);
  options.env.push_back("ASAN_OPTIONS=verify_asan_link_order=0");
  options.env.push_back("FAULTY_IO_LOCK=" + lock);
  return options;
}

Outcome TrainWithLock(Job& job, const std::string& lock, const std::vector<std::string>& flags) {
  job.Write();
  return RunProgram(job.TrainCommand(flags), OptionsWithLock(job, lock));
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_P(LockTestLockFailure, ThatCannotBeHadIsAWarningForEachDatabase) {
  Job job;
  const Outcome outcome = TrainWithLock(job, Join(GetParam()), {});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // LMDB itself continues without a lock on a read-only file system.
  const int warnings = GetParam() == EROFS ? 0 : 1;
  for (const char* database : {"data/train_lmdb", "data/test_lmdb"}) {
    EXPECT_EQ(Count(outcome.err, Join(database, ": cannot lock lock.mdb (")), warnings)
        << outcome.err;
  }
  EXPECT_EQ(Count(outcome.err, TextOfLockFailure(GetParam())), 2 * warnings);
}

TEST_P(LockTestLockFailure, IsNotAskedForWithDbLockOff) {
  Job job;
  const Outcome outcome = TrainWithLock(job, Join(GetParam()), {"--db_lock=off"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("cannot lock lock.mdb")));
}

TEST(DatasetLockTest, ADatabaseThatIsOpenedManyTimesIsWarnedOfOnce) {
  const Job job;
  const Outcome outcome = RunProgram({"dataset", "bench", "data/train_lmdb", "--seconds=1"},
                                     OptionsWithLock(job, Join(EACCES)));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Count(outcome.err, "data/train_lmdb: cannot lock lock.mdb ("), 1) << outcome.err;
}

}  // namespace
}  // namespace trainer

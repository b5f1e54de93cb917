// Tests which run may write the snapshots of a prefix.

#include "trainer/checkpoint/snapshot_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <regex>
#include <string>

#include "lock_owner.h"
#include "support/error_of.h"
#include "support/in_child.h"
#include "support/log_collector.h"
#include "support/scoped.h"
#include "support/temp_folder.h"
#include "trainer/base/file/own_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr LockTimes kQuick = {.heartbeat = milliseconds(20),
                              .expiry = milliseconds(60000),
                              .poll = milliseconds(5),
                              .wait = milliseconds(0)};

class SnapshotLockTest : public testing::Test {
 protected:
  // Leaves a lock of another run that was touched `ago` before now, by the file system's clock,
  // which lags the processor's clock by up to a tick.
  void Leave(const LockOwner& owner, std::chrono::seconds ago = std::chrono::seconds(0)) const {
    LeaveAt(path_, owner, ago);
  }
  static void LeaveAt(const std::string& path, const LockOwner& owner, std::chrono::seconds ago) {
    WriteText(path, owner.Text());
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - ago);
  }
  static LockOwner Elsewhere() {
    LockOwner owner = LockOwner::Self();
    owner.host = "elsewhere";
    owner.machine = "another boot";
    return owner;
  }
  void ExpectRefused(const std::string& part) const {
    const auto [code, message] = ErrorOf([&] { SnapshotLock lock(prefix_, kQuick); });
    EXPECT_EQ(code, ErrorCode::kCannotCreate);
    EXPECT_THAT(message, HasSubstr("belong to another run that is active, "));
    EXPECT_THAT(message, HasSubstr(part));
    const auto [check_code, check_message] = ErrorOf([&] { CheckSnapshotLock(prefix_, kQuick); });
    EXPECT_EQ(check_code, code);
    EXPECT_EQ(WithoutTime(check_message), WithoutTime(message));
  }
  // Removes the number of seconds, which may differ between two messages.
  static std::string WithoutTime(const std::string& message) {
    static const std::regex time("[0-9.]+ s in the future");
    return std::regex_replace(message, time, "T s in the future");
  }
  void ExpectTakenOver(const std::string& why) const {
    CheckSnapshotLock(prefix_, kQuick);
    const LogCollector log;
    {
      const SnapshotLock lock(prefix_, kQuick);
      EXPECT_THAT(log.lines, ElementsAre(HasSubstr(why)));
      EXPECT_EQ(LockOwner::Parse(ReadText(path_)).pid, getpid());
      EXPECT_THAT(folder_.Names(), ElementsAre(".snap.lock"));
    }
    EXPECT_THAT(folder_.Names(), IsEmpty());
  }

  TempFolder folder_;
  std::string prefix_ = folder_ / "snap", path_ = SnapshotLockPath(prefix_);
};

TEST_F(SnapshotLockTest, IsThereWhileItLives) {
  EXPECT_EQ(path_, folder_ / ".snap.lock");
  {
    const SnapshotLock lock(prefix_);
    EXPECT_THAT(folder_.Names(), ElementsAre(".snap.lock"));
    ExpectRefused(Join("process ", getpid(), " on host "));
    const SnapshotLock other(folder_ / "another");
  }
  EXPECT_THAT(folder_.Names(), IsEmpty());
  CheckSnapshotLock(prefix_);
}

TEST_F(SnapshotLockTest, TheOwnerReadsBackAsItWasWritten) {
  LockOwner owner = LockOwner::Self();
  owner.job = "12\n34";
  EXPECT_THAT(LockOwner::Parse("pid=12\nhost=a\njob=77\nodd line\nmore=1\n").Describe(),
              "process 12 on host a (batch job 77)");
  owner.job = "12";
  EXPECT_EQ(LockOwner::Parse(owner.Text()).Text(), owner.Text());
  EXPECT_EQ(owner.CheckLiveness(), LockOwner::Life::kRuns);
  EXPECT_EQ(LockOwner::Parse("").CheckLiveness(), LockOwner::Life::kUnknown);
}

TEST_F(SnapshotLockTest, OfAProcessThatIsGoneIsTakenOver) {
  LockOwner owner = LockOwner::Self();
  owner.pid = fork();
  if (owner.pid == 0) _exit(0);
  // The process has first ended without being waited for, and is then gone.
  siginfo_t ignored = {};
  waitid(P_PID, static_cast<id_t>(owner.pid), &ignored, WEXITED | WNOWAIT);
  Leave(owner);
  ExpectTakenOver("which is no longer running");
  waitpid(owner.pid, nullptr, 0);
  Leave(owner);
  ExpectTakenOver(Join("from process ", owner.pid, " on host ", owner.host));
}

TEST_F(SnapshotLockTest, OfAnotherProcessWithTheSameNumberIsTakenOver) {
  LockOwner owner = LockOwner::Self();
  owner.started = "1";
  Leave(owner);
  ExpectTakenOver("which is no longer running");
}

TEST_F(SnapshotLockTest, OfAProcessThatRunsIsHeldHoweverLongItIsSilent) {
  Leave(LockOwner::Self(), std::chrono::hours(5));
  ExpectRefused(Join("process ", getpid(), " on host "));
}

TEST_F(SnapshotLockTest, OfAnotherMachineCountsUntilItIsSilentForLong) {
  Leave(Elsewhere(), std::chrono::seconds(30));
  ExpectRefused("60 s after its last update");
  Leave(Elsewhere(), std::chrono::seconds(90));
  ExpectTakenOver("on host elsewhere, which did not update the lock for ");
}

TEST_F(SnapshotLockTest, ThatSaysNothingCountsLikeOneOfAnotherMachine) {
  WriteText(path_, "");
  ExpectRefused("an unknown process");
  Leave(LockOwner{}, std::chrono::seconds(90));
  ExpectTakenOver("did not update the lock");
}

TEST_F(SnapshotLockTest, DatedInTheFutureIsToldWithAWordAboutClocks) {
  Leave(Elsewhere(), -std::chrono::hours(1));
  ExpectRefused(" s in the future: the clocks of the machines or of the file server differ");
  ExpectRefused("If that run has ended, remove " + path_);
}

// No run creates such an entry, and waiting would not remove it.
TEST_F(SnapshotLockTest, ThatIsNoFileIsRefusedAtOnce) {
  const auto expect_refused = [&](const std::string& part) {
    const auto [code, message] = ErrorOf([&] { SnapshotLock lock(prefix_, kQuick); });
    EXPECT_EQ(code, ErrorCode::kCannotCreate);
    EXPECT_THAT(message, HasSubstr(part));
    EXPECT_EQ(ErrorOf([&] { CheckSnapshotLock(prefix_, kQuick); }), std::pair(code, message));
    std::filesystem::remove(path_);
  };
  for (const std::string& target : {folder_ / "absent", path_}) {
    std::filesystem::create_symlink(target, path_);
    expect_refused("is a symbolic link, but the path is needed for the lock file");
  }
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_refused("is a pipe (FIFO), but the path is needed for the lock file");
}

TEST_F(SnapshotLockTest, GivesSignsOfLife) {
  const SnapshotLock lock(prefix_, kQuick);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(path_, old);
  while (std::filesystem::last_write_time(path_) == old) usleep(10000);
  EXPECT_GT(std::filesystem::last_write_time(path_), old + std::chrono::minutes(50));
}

// Lets a thread wait until another one logs something.
class AwaitedLog : public LogCollector {
 public:
  void send(google::LogSeverity severity, const char* path, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override {
    LogCollector::send(severity, path, file, line, time, message, length);
    told_ = true;
  }
  void Await() const {
    while (!told_) usleep(10000);
  }

 private:
  std::atomic<bool> told_{false};
};

TEST_F(SnapshotLockTest, ThatWasTakenAwayIsSaidOnceAndLeftToItsOwner) {
  AwaitedLog log;
  {
    const SnapshotLock lock(prefix_, kQuick);
    Leave(Elsewhere());
    log.Await();
  }
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("no longer belongs to this")));
  EXPECT_EQ(LockOwner::Parse(ReadText(path_)).host, "elsewhere");
}

TEST_F(SnapshotLockTest, WaitsForTheOtherRunToEnd) {
  LockTimes times = kQuick;
  times.wait = std::chrono::seconds(1000);
  Leave(Elsewhere());
  const AwaitedLog log;
  std::thread other([&] {
    log.Await();
    std::filesystem::remove(path_);
  });
  const SnapshotLock lock(prefix_, times);
  other.join();
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("waiting up to 1000 s for it to end")));
}

TEST_F(SnapshotLockTest, AJobThatIsQueuedAgainOutwaitsItsFormerSelf) {
  const ScopedEnvironment job("SLURM_JOB_ID", "77");
  Leave(Elsewhere());
  job.Set(std::nullopt);
  ExpectRefused("(batch job 77)");
  LockTimes times = kQuick;
  times.expiry = milliseconds(2000);
  job.Set("77");
  const LogCollector log;
  const SnapshotLock lock(prefix_, times);
  EXPECT_THAT(log.lines, Contains(HasSubstr("Took over the lock")));
}

TEST_F(SnapshotLockTest, TryDoesNotWaitEvenForAProcessOfTheSameJob) {
  const ScopedEnvironment job("SLURM_JOB_ID", "77");
  {
    const auto lock = SnapshotLock::Try(prefix_, kQuick);
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(SnapshotLock::Try(prefix_, kQuick), nullptr);
    EXPECT_THAT(folder_.Names(), ElementsAre(".snap.lock")) << "the other one left it";
  }
  EXPECT_THAT(folder_.Names(), IsEmpty());
  Leave(Elsewhere(), std::chrono::hours(1));
  const LogCollector log;
  EXPECT_NE(SnapshotLock::Try(prefix_, kQuick), nullptr) << "its owner is dead";
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("Took over the lock")));
}

TEST_F(SnapshotLockTest, IsNotTakenOverWhileAnotherRunDoes) {
  LockOwner rival = LockOwner::Self();
  rival.job = "78";
  Leave(Elsewhere(), std::chrono::hours(1));
  LeaveAt(path_ + ".takeover", rival, std::chrono::seconds(0));
  const std::string before = ReadText(path_);
  const LogCollector log;
  const auto [code, message] = ErrorOf([&] { SnapshotLock lock(prefix_, kQuick); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("belong to another run that is active, process " +
                                 std::to_string(getpid())));
  EXPECT_THAT(message, HasSubstr("(batch job 78)"));
  EXPECT_THAT(log.lines, IsEmpty());
  EXPECT_EQ(ReadText(path_), before);
  EXPECT_THAT(folder_.Names(), ElementsAre(".snap.lock", ".snap.lock.takeover"));
}

TEST_F(SnapshotLockTest, IsTakenOverAfterARunThatDiedWhileItDid) {
  Leave(Elsewhere(), std::chrono::hours(1));
  LeaveAt(path_ + ".takeover", Elsewhere(), std::chrono::hours(1));
  LeaveAt(path_ + ".takeover.takeover", Elsewhere(), std::chrono::hours(1));
  {
    const SnapshotLock lock(prefix_, kQuick);
    EXPECT_EQ(LockOwner::Parse(ReadText(path_)).pid, getpid());
    EXPECT_THAT(folder_.Names(), ElementsAre(".snap.lock"));
  }
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

// Starts eight processes at once that take over the lock of a dead run. Returns how many got it.
int HoldersOfEight(const std::string& prefix) {
  constexpr int kRuns = 8;
  int results[2], finish[2];
  EXPECT_EQ(pipe(results), 0);
  EXPECT_EQ(pipe(finish), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kRuns; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    close(finish[1]);
    char result = '0', byte = 0;
    try {
      const SnapshotLock lock(prefix, kQuick);
      result = '1';
      if (write(results[1], &result, 1) != 1 || read(finish[0], &byte, 1) != 0) _exit(1);
    } catch (const Error&) {
      if (write(results[1], &result, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  int holders = 0, reported = 0;
  close(results[1]);
  for (char result = 0; read(results[0], &result, 1) == 1;) {
    holders += result == '1' ? 1 : 0;
    if (++reported == kRuns) break;
  }
  close(finish[1]);
  close(finish[0]);
  close(results[0]);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  return holders;
}

TEST_F(SnapshotLockTest, OneOfManyRunsGetsIt) {
  for (int round = 0; round < 20; ++round) {
    Leave(Elsewhere(), std::chrono::hours(1));
    EXPECT_EQ(HoldersOfEight(prefix_), 1);
    EXPECT_THAT(folder_.Names(), IsEmpty());
  }
}

TEST_F(SnapshotLockTest, GoesWithAProcessThatEndsInAHandler) {
  EXPECT_EQ(InChild([&] {
              const SnapshotLock lock(prefix_, kQuick);
              std::signal(SIGTERM, [](int) {
                RemoveOwnFiles();
                _exit(9);
              });
              raise(SIGTERM);
              return 0;
            }),
            9);
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

TEST_F(SnapshotLockTest, NeedsAFolderThatCanBeWritten) {
  const auto [code, message] = ErrorOf([&] { SnapshotLock lock(folder_ / "none/snap"); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("the folder for snapshots does not exist"));
}

}  // namespace
}  // namespace trainer

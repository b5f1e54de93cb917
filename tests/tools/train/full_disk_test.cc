// Disks that fill up and terminals that close while a run trains.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>

#include "in_process.h"
#include "job.h"
#include "support/stub_commands.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// A job whose folder "full" is a file system of 1 MiB.
class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(Full());
    if (mount("none", Full().c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "mounting a small file system needs root";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) umount(Full().c_str());
  }
  std::string Full() const { return job_.folder() / "full"; }
  // Fills the disk to the last byte.
  void Fill() const {
    const int fd = open((Full() + "/filler").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_GE(fd, 0);
    const std::string block(4096, 'x');
    while (write(fd, block.data(), block.size()) > 0) continue;
    close(fd);
  }
  int States() const {
    int states = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Full())) {
      const std::string name = entry.path().filename().string();
      const bool is_link = entry.is_symlink();  // links to the newest snapshot
      states += name.ends_with(".solverstate") && !is_link ? 1 : 0;
    }
    return states;
  }
  void MakeRoom() const { std::filesystem::remove(Full() + "/filler"); }

  Job job_;
  bool mounted_ = false;
};

TEST_F(FullDiskTest, ASnapshotOnTheWayThatFindsNoRoomIsTriedAgain) {
  job_.environment = HastySlurmJob(job_.folder());
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
  job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
  job_.solver = Edited(job_.solver, "\"snap\"", "\"full/snap\"");
  job_.Write();
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 0 (");
  Fill();
  program.Signal(SIGHUP);
  EXPECT_THAT(program.WaitForLine("could not be written"),
              AllOf(StartsWith("W"), HasSubstr("The snapshot of iteration "),
                    HasSubstr("training continues, and the run tries again in 10 s. "),
                    HasSubstr("No space left on device; the disk is full")));
  program.WaitForLine("Iteration ");
  MakeRoom();
  program.Signal(SIGHUP);  // replaces the first one if it is still pending
  const std::string started = program.WaitForLine("Snapshotting solver state");
  const std::string state = started.substr(started.rfind("full/"));
  EXPECT_TRUE(Await([&] { return std::filesystem::exists(job_.folder() / state); })) << state;
  const int states = States();
  Fill();
  program.Signal(SIGTERM);  // the last snapshot
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("No space left on device")));
  for (const auto& entry : std::filesystem::directory_iterator(Full())) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with('.')) << name;
  }
  EXPECT_EQ(States(), states);
}

// A chain of jobs continues after 74, but ends after 77.
TEST_F(FullDiskTest, AMountThatTurnsReadOnlyIsAMatterOfTheDisk) {
  job_.environment = HastySlurmJob(job_.folder());
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
  job_.solver = Edited(job_.solver, "\"snap\"", "\"full/snap\"");
  job_.Write();
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 0 (");
  const auto remount = [&](unsigned long how) {
    return mount("none", Full().c_str(), "tmpfs", MS_REMOUNT | how, "size=1m");
  };
  ASSERT_EQ(remount(MS_RDONLY), 0);
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("Read-only file system")));
  const Outcome again = job_.TrainAsProcess();
  EXPECT_EQ(again.exit_code, 74) << again.err;
  EXPECT_THAT(again.Errors(), ElementsAre(HasSubstr("Read-only file system")));
  remount(0);
}

TEST_F(FullDiskTest, ADatabaseThatFindsNoRoomIsRefusedByTheNameThatWasGiven) {
  for (const std::string backend : {"lmdb", "leveldb"}) {
    const Outcome outcome =
        RunHere({"dataset", "digits", Full() + "/digits", "--train=3000", "--backend=" + backend},
                job_.options());
    EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
    EXPECT_THAT(outcome.Errors(),
                ElementsAre(AllOf(HasSubstr("/digits/train_" + backend + ": cannot write: "),
                                  HasSubstr("No space left on device; the disk is full"))));
    EXPECT_TRUE(std::filesystem::is_empty(Full()));
  }
}

TEST_F(FullDiskTest, AScheduledSnapshotThatFindsNoRoomEndsNothing) {
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 100");
  job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000");
  job_.solver = Edited(job_.solver, "\"snap\"", "\"full/snap\"");
  job_.Write();
  RunOptions options = job_.options();
  options.in_step = true;
  RunningProgram program(job_.TrainCommand(), options);
  program.WaitForLine("Iteration 0 (");
  Fill();
  program.WaitForLine("could not be written; training continues");
  MakeRoom();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(Full() + "/snap_iter_1000.solverstate"));
}

TEST_F(FullDiskTest, AFullLogDiskIsSaidOnceAndTrainingGoesOn) {
  job_.solver = Edited(job_.solver, "display: 5", "display: 1");
  job_.Write();
  Fill();
  const Outcome outcome = RunProgram(job_.TrainCommand({"--log_dir=full"}), job_.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> warnings = outcome.ErrLines();
  std::erase_if(warnings, [](const auto& line) { return !line.starts_with("warning: "); });
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the log in full cannot be written: No space left")));
  EXPECT_THAT(outcome.err, HasSubstr("] Iteration 19 ("));
}

TEST(LogFolderTest, IsRefusedBeforeAnythingElse) {
  Job job;
  job.Write();
  WriteText(job.folder() / "file", "");
  const std::pair<const char*, const char*> folders[] = {
      {"absent", "absent: the folder for the log (--log_dir) does not exist; create it"},
      {"file", "file: this is not a folder, so no log can be written there"}};
  for (const auto& [folder, part] : folders) {
    ExpectRefused(job,
                  RunProgram(job.TrainCommand({std::string("--log_dir=") + folder}), job.options()),
                  73, "/", part);
    RunOptions options = job.options();
    options.env.push_back(std::string("GLOG_log_dir=") + folder);
    ExpectRefused(job, RunProgram(job.TrainCommand(), options), 73, "/", part);
  }
  EXPECT_THAT(job.Files("snap"), IsEmpty());
}

TEST(LogFolderTest, WithoutPermissionIsRefused) {
  using std::filesystem::perms;
  Job job;
  job.Write();
  std::filesystem::create_directory(job.folder() / "closed");
  std::filesystem::permissions(job.folder() / "closed", perms::owner_read | perms::owner_exec);
  const Outcome outcome =
      RunProgram(job.TrainCommand({"--log_dir=closed"}), job.OptionsWithoutRoot());
  if (outcome.exit_code == 126) GTEST_SKIP() << "another user may not start the program";
  ExpectRefused(job, outcome, 77, "/", "cannot write a log here (--log_dir): Permission denied");
}

constexpr char kLost[] = "warning: the log cannot be written to stderr";

TEST(LogLossTest, AFullStderrIsSaidOnStdoutAndEndsNothing) {
  Job job;
  job.Write();
  RunOptions options = job.options();
  options.stderr_path = "/dev/full";
  const Outcome outcome = RunProgram(job.TrainCommand(), options);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith(kLost), EndsWith("continues without these lines\n")));
  EXPECT_THAT(job.Files("snap_iter_20"), SizeIs(2));
  options.stdout_path = "/dev/full";
  EXPECT_EQ(RunProgram(job.TrainCommand({"--resume=auto"}), options).exit_code, 0);
}

TEST(LogLossTest, AFullStderrIsSaidInTheLogFile) {
  Job job;
  job.Write();
  std::filesystem::create_directory(job.folder() / "logs");
  RunOptions options = job.options();
  options.stderr_path = "/dev/full";
  const Outcome outcome = RunProgram(job.TrainCommand({"--log_dir=logs"}), options);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  const std::string log = ReadText(job.folder() / "logs/trainer.INFO");
  EXPECT_THAT(log, HasSubstr(kLost));
  EXPECT_THAT(log, HasSubstr("Optimization Done."));
}

TEST(LogLossTest, APipeThatIsClosedEarlyEndsNothing) {
  Job job;
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 200");
  job.solver = Edited(job.solver, "display: 5", "display: 1");
  job.Write();
  RunOptions options = job.options();
  options.in_step = true;
  RunningProgram program(job.TrainCommand(), options);
  program.WaitForLine("Iteration 3 (");
  program.CloseStderr();
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(job.Files("snap_iter_200"), SizeIs(2));
  EXPECT_THAT(outcome.out, StartsWith(kLost));
}

}  // namespace
}  // namespace trainer

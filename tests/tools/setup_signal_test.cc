// Signals before there is an iteration to finish: while files are read, and in verbs that train
// nothing.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "job.h"

namespace trainer {
namespace {

using testing::IsEmpty;

// Starts a program that opens the pipe `name` of the folder and then waits for ever to read it;
// sends the signal there.
Outcome SignalledWhileItReads(const Job& job, const std::string& name,
                              const std::vector<std::string>& command, int signal) {
  Program program(command, job.options());
  const int writer = open((job.folder() / name).c_str(), O_WRONLY);  // until the program opens it
  EXPECT_GE(writer, 0);
  program.Signal(signal);
  Outcome outcome = program.Wait();
  close(writer);
  return outcome;
}

class SetUpSignalTest : public testing::Test {
 protected:
  SetUpSignalTest() {
    job_.Write();
    std::filesystem::remove(job_.folder() / "net.prototxt");
    EXPECT_EQ(mkfifo((job_.folder() / "net.prototxt").c_str(), 0600), 0);
  }
  Job job_;
};

TEST_F(SetUpSignalTest, EndsTheProgramAtOnce) {
  const std::vector<std::vector<std::string>> commands = {
      {"train", "--solver=solver.prototxt"},
      {"check", "--solver=solver.prototxt"},
      {"time", "--solver=solver.prototxt"},
      {"plan", "--solver=solver.prototxt"},
      {"test", "--model=net.prototxt", "--weights=w"}};
  for (const auto& command : commands) {
    for (const int signal : {SIGINT, SIGTERM}) {
      const Outcome outcome = SignalledWhileItReads(job_, "net.prototxt", command, signal);
      EXPECT_EQ(outcome.signal, signal) << command[0] << outcome.err;
      EXPECT_THAT(outcome.Errors(), IsEmpty());
    }
  }
}

TEST_F(SetUpSignalTest, TheWarningOfABatchSystemEndsItAsAStopThatLosesNothing) {
  const auto command = job_.TrainCommand();
  EXPECT_EQ(SignalledWhileItReads(job_, "net.prototxt", command, SIGUSR1).exit_code, 75);
  auto other = job_.TrainCommand({"--stop_exit_code=9"});
  EXPECT_EQ(SignalledWhileItReads(job_, "net.prototxt", other, SIGUSR1).exit_code, 9);
}

TEST_F(SetUpSignalTest, ASignalThatShallDoNothingDoesNothing) {
  Program program(job_.TrainCommand({"--sigterm_effect=none"}), job_.options());
  const int writer = open((job_.folder() / "net.prototxt").c_str(), O_WRONLY);
  program.Signal(SIGTERM);
  program.Signal(SIGHUP);
  ASSERT_EQ(write(writer, job_.net.data(), job_.net.size()), static_cast<ssize_t>(job_.net.size()));
  close(writer);
  EXPECT_EQ(program.Wait().exit_code, 0);
}

// With the lock taken: the data of the net is a pipe.
TEST(SetUpLockTest, NothingStaysOfARunThatASignalEndsWhileItsNetIsBuilt) {
  Job job;
  job.net = Edited(job.net, "scale: 0.00390625", "mean_file: \"mean\"");
  job.Write();
  ASSERT_EQ(mkfifo((job.folder() / "mean").c_str(), 0600), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const Outcome outcome = SignalledWhileItReads(job, "mean", job.TrainCommand(), signal);
    EXPECT_EQ(outcome.signal, signal) << outcome.err;
    EXPECT_THAT(job.Files("."), IsEmpty());
    EXPECT_THAT(job.Files("snap"), IsEmpty());
  }
}

TEST(VerbSignalTest, OtherVerbsEndAtOnce) {
  Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::pair<std::vector<std::string>, const char*> commands[] = {
      {{"test", "--model=net.prototxt", "--weights=snap_iter_20.caffemodel",
        "--iterations=100000000"},
       "Batch 3"},
      {{"time", "--model=net.prototxt", "--iterations=100000000"}, "Iteration: 2 "}};
  for (const auto& [command, line] : commands) {
    for (const int signal : {SIGINT, SIGTERM}) {
      Program program(command, job.options());
      program.WaitForLine(line);
      program.Signal(signal);
      EXPECT_EQ(program.Wait().signal, signal) << command[0];
    }
  }
  Program program({"dataset", "digits", "many", "--train=100000000"}, job.options());
  while (!std::filesystem::exists(job.folder() / "many")) usleep(10000);
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait().signal, SIGTERM);
}

}  // namespace
}  // namespace trainer

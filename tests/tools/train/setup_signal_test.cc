// Signals before the first iteration, while nets are built, and in commands that do not train.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A log that blocks after its first lines, so that the program waits in the middle of set-up.
class FullLog {
 public:
  explicit FullLog(const std::string& path) : path_(path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    pipe_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    EXPECT_GE(fcntl(pipe_, F_SETPIPE_SZ, 4096), 0);
  }
  ~FullLog() {
    close(pipe_);
    std::filesystem::remove(path_);
  }
  const std::string& path() const { return path_; }

  // Waits until the program blocks in a write. Returns at once if the system does not show this.
  bool AwaitFull(const RunningProgram& program) const {
    const std::string place = "/proc/" + std::to_string(program.pid()) + "/wchan";
    return Await([&] {
      std::ifstream file(place);
      std::string function;
      return !(file >> function) || function.find("pipe_write") != std::string::npos;
    });
  }

  // Reads everything until the program ends.
  std::string Drain(RunningProgram& program, Outcome* outcome) {
    std::string text;
    std::jthread reader([&](const std::stop_token& stop) {
      char bytes[4096];
      while (!stop.stop_requested()) {
        const ssize_t size = read(pipe_, bytes, sizeof bytes);
        if (size > 0) {
          text.append(bytes, static_cast<size_t>(size));
        } else {
          usleep(1000);
        }
      }
    });
    *outcome = program.Wait();
    reader.request_stop();
    reader.join();
    return text;
  }

 private:
  std::string path_;
  int pipe_ = -1;
};

class SetUpSignalTest : public testing::Test {
 protected:
  SetUpSignalTest() { job_.Write(); }

  // Sends `signal` while the program builds its nets, which Caffe's full log describes at length.
  Outcome Signalled(int signal, std::vector<std::string> more = {}) {
    more.push_back("--log=caffe");
    FullLog log(job_.folder() / "log");
    RunOptions options = job_.options();
    options.stderr_path = log.path();
    RunningProgram program(job_.TrainCommand(more), options);
    EXPECT_TRUE(log.AwaitFull(program));
    EXPECT_THAT(job_.Files("."), ElementsAre(".snap.lock"));
    program.Signal(signal);
    return program.Wait();
  }
  Job job_;
};

TEST_F(SetUpSignalTest, EndsTheRunAtOnceAndLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EQ(Signalled(signal).signal, signal);
    EXPECT_THAT(job_.Files("."), IsEmpty());
    EXPECT_THAT(job_.Files("snap"), IsEmpty());
  }
}

TEST_F(SetUpSignalTest, TheWarningOfABatchSystemEndsItAsAStopThatLosesNothing) {
  EXPECT_EQ(Signalled(SIGUSR1).exit_code, 75);
  EXPECT_EQ(Signalled(SIGUSR2).exit_code, 75);
  EXPECT_EQ(Signalled(SIGUSR1, {"--stop_exit_code=9"}).exit_code, 9);
}

TEST_F(SetUpSignalTest, ASignalThatShallDoNothingDoesNothing) {
  FullLog log(job_.folder() / "log");
  RunOptions options = job_.options();
  options.stderr_path = log.path();
  RunningProgram program(job_.TrainCommand({"--sigterm_effect=none", "--log=caffe"}), options);
  EXPECT_TRUE(log.AwaitFull(program));
  program.Signal(SIGTERM);
  Outcome outcome;
  const std::string text = log.Drain(program, &outcome);
  EXPECT_EQ(outcome.exit_code, 0) << text;
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
      RunningProgram program(command, job.options());
      program.WaitForLine(line);
      program.Signal(signal);
      EXPECT_EQ(program.Wait().signal, signal) << command[0];
    }
  }
  RunningProgram program({"dataset", "digits", "many", "--train=100000000"}, job.options());
  EXPECT_TRUE(Await([&] { return std::filesystem::exists(job.folder() / "many"); }));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait().signal, SIGTERM);
}

// The temporary folder is removed a second before the process ends, which would be long enough to
// complete the set.
TEST(VerbSignalTest, ASetWhoseFolderASignalRemovedEndsByTheSignal) {
  Job job;
  RunOptions options = job.options();
  options.env.insert(options.env.end(), {"LD_PRELOAD=" TRAINER_FAULTY_IO, "FAULTY_IO_KILL=1000",
                                         "ASAN_OPTIONS=verify_asan_link_order=0"});
  RunningProgram program({"dataset", "digits", "many", "--train=2000"}, options);
  EXPECT_TRUE(Await([&] { return std::filesystem::exists(job.folder() / "many"); }));
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("error")));
}

}  // namespace
}  // namespace trainer

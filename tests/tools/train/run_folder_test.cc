// The folder of a run, and the commands that read it: status, log, report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "support/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class RunFolderTest : public testing::Test {
 protected:
  std::string Read(const std::string& name) const { return ReadText(job_.folder() / name); }
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, job_.options());
  }
  // Returns "event iter" for each line of metrics.jsonl. The position of a snapshot varies, because
  // it is reported once it is on disk.
  std::vector<std::string> Events(const std::string& folder) const {
    std::vector<std::string> events;
    std::istringstream lines(Read(folder + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const JsonValue json = ReadJson(line);
      if (json["event"].text == "note") continue;  // about a busy machine
      events.push_back(json["event"].text + " " + std::to_string(int(json["iter"].number)));
    }
    return events;
  }
  // Makes a run that continues until it is stopped.
  void MakeEndless() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.solver = Edited(job_.solver, "display: 5", "display: 1000");
    job_.Write();
  }
  std::string StateOf(const std::string& folder) const {
    const Outcome outcome = Run({"status", folder, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return ReadJson(outcome.out)[0]["state"].text;
  }

  Job job_;
};

TEST_F(RunFolderTest, HoldsWhatTheRunWasAndWhatItTold) {
  const Outcome outcome = job_.TrainAsProcess({"--run=runs/first"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* name : {"solver.prototxt", "net.prototxt", "environment.json", "metrics.jsonl",
                           "metrics.csv", "train.log"}) {
    EXPECT_THAT(Read(std::string("runs/first/") + name), Not(IsEmpty())) << name;
  }
  EXPECT_THAT(Events("runs/first"),
              UnorderedElementsAre("start 0", "test 0", "train 0", "train 5", "test 10", "train 10",
                                   "snapshot 10", "train 15", "snapshot 20", "train 20", "test 20",
                                   "end 20"));
  EXPECT_EQ(Read("runs/first/train.log").substr(0, 1), "I");
  EXPECT_THAT(Read("runs/first/train.log"), HasSubstr("Iteration 10, lr = "));
  EXPECT_THAT(Read("runs/first/metrics.csv"),
              AllOf(StartsWith("iter,time,name,value\n"), HasSubstr(",train/loss,"),
                    HasSubstr(",test0/accuracy,"), HasSubstr(",speed/images_per_second,")));
  const JsonValue environment = ReadJson(Read("runs/first/environment.json"));
  EXPECT_THAT(environment["program"].text, StartsWith("trainer "));
  EXPECT_EQ(environment["command"][1].text, "train");
  const Outcome check = Run({"check", "--solver=runs/first/solver.prototxt", "--resume=auto"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
}

TEST_F(RunFolderTest, WithoutAFolderItStandsBesideTheSnapshots) {
  ASSERT_EQ(job_.Train({"--run"}).exit_code, 0);
  EXPECT_THAT(Events("snap_run"), testing::Contains("end 20"));
}

TEST_F(RunFolderTest, WatchingChangesNoWeight) {
  ASSERT_EQ(job_.Train({"--run=watched"}).exit_code, 0);
  const std::string watched = Read("snap_iter_20.caffemodel");
  ASSERT_EQ(job_.Train().exit_code, 0);
  EXPECT_EQ(Read("snap_iter_20.caffemodel"), watched);
}

TEST_F(RunFolderTest, AResumedRunDropsWhatWasToldBehindItsSnapshot) {
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 8");
  ASSERT_EQ(job_.Train({"--run=run"}).exit_code, 0);
  const Outcome outcome = job_.Train({"--run=run", "--snapshot=snap_iter_8.solverstate"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(Events("run"),
              UnorderedElementsAre("start 0", "test 0", "train 0", "train 5", "snapshot 8",
                                   "start 8", "test 10", "train 10", "train 15", "snapshot 16",
                                   "snapshot 20", "train 20", "test 20", "end 20"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("(0 iter/s")));
  EXPECT_TRUE(Finds(outcome.err, R"(Iteration 10 \(\S+ iter/s, \S+s/2 iters\), loss)"))
      << outcome.err;
}

// A pipe does not block the run, either.
TEST_F(RunFolderTest, NothingIsWrittenThroughLinksOrToPipes) {
  WriteText(job_.folder() / "precious", "precious");
  std::filesystem::create_directory(job_.folder() / "run");
  for (const char* name : {"train.log", "metrics.jsonl", "metrics.csv"}) {
    const std::string path = Join(job_.folder().path(), "/run/", name);
    std::filesystem::create_symlink("../precious", path);
    ExpectRefused(job_, job_.Train({"--run=run"}), 73, "/", "is a symbolic link, but the program");
    unlink(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    ExpectRefused(job_, job_.Train({"--run=run"}), 73, "/", "is a pipe (FIFO), but the program");
    unlink(path.c_str());
  }
  EXPECT_EQ(Read("precious"), "precious");
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsOneWarning) {
  WriteText(job_.folder() / "file", "");
  const Outcome outcome = job_.Train({"--run=file/run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  int warnings = 0;
  for (const std::string& line : outcome.ErrLines()) {
    warnings += line.starts_with("W") && Finds(line, "file/run") ? 1 : 0;
  }
  EXPECT_EQ(warnings, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Not a directory. The run continues"));
  EXPECT_EQ(Read("file"), "");
}

TEST_F(RunFolderTest, AFileInPlaceOfTheFolderIsRefused) {
  WriteText(job_.folder() / "file", "precious");
  ExpectRefused(job_, job_.Train({"--run=file"}), 73, "/",
                "/file: this is a file, but --run needs a folder, which it creates if it is "
                "missing; give another name");
  EXPECT_EQ(Read("file"), "precious");
  EXPECT_THAT(Run({"test", "--run=file"}).Errors(),
              ElementsAre(HasSubstr("/file: this is a file; give the folder of a run, which "
                                    "'trainer train --run=DIR' makes")));
}

TEST_F(RunFolderTest, AFullDiskStopsNothing) {
  const std::string full = job_.folder() / "full";
  std::filesystem::create_directory(full);
  if (mount("none", full.c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  const Outcome outcome = job_.Train({"--run=full/run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.err, "No space left on device.*The run continues")) << outcome.err;
  EXPECT_EQ(job_.Files("snap_iter_20.caffemodel"),
            std::vector<std::string>{"snap_iter_20.caffemodel"});
  umount(full.c_str());
}

TEST_F(RunFolderTest, StatusKnowsARunThatLivesStoppedOrDied) {
  MakeEndless();
  {
    RunningProgram program(job_.TrainCommand({"--run=runs/a"}), job_.options());
    program.WaitForLine("Iteration 1000 ");
    EXPECT_EQ(StateOf("runs"), "running");
    program.Signal(SIGTERM);
    EXPECT_EQ(program.Wait().exit_code, 75);
  }
  EXPECT_EQ(StateOf("runs/a"), "stopped");
  {
    RunningProgram program(job_.TrainCommand({"--run=runs/a"}), job_.options());
    program.WaitForLine("Iteration 1000 ");
    program.Signal(SIGKILL);
    EXPECT_EQ(program.Wait().signal, SIGKILL);
  }
  EXPECT_EQ(StateOf("runs/a"), "dead");
  const Outcome table = Run({"status", "runs"});
  EXPECT_TRUE(Finds(table.out, R"(\na +dead +\d+ +100000000 +0 )")) << table.out;
}

TEST_F(RunFolderTest, StatusKnowsAFinishedRun) {
  ASSERT_EQ(job_.Train({"--run=run"}).exit_code, 0);
  EXPECT_EQ(StateOf("run"), "finished");
  RunOptions narrow = job_.options();
  narrow.env.push_back("COLUMNS=64");
  const Outcome table = RunHere({"status", "run"}, narrow);
  EXPECT_TRUE(Finds(table.out, R"(\nrun +finished +\d+ +\d+ .*\n\(not shown in 64 columns: )"))
      << table.out;
  for (const std::string& line : SplitList(table.out, '\n')) EXPECT_LE(line.size(), 64u) << line;
  const Outcome none = Run({"status", "data"});
  EXPECT_EQ(none.exit_code, 66);
  EXPECT_THAT(none.Errors(), ElementsAre(HasSubstr("no run found")));
}

TEST_F(RunFolderTest, LogWritesTheTablesOfParseLogAndCurves) {
  const Outcome trained = job_.Train({"--run=run"});
  WriteText(job_.folder() / "train.log", trained.err);
  const Outcome outcome = Run({"log", "train.log", "run", "--out=."});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(Read("train.log.train"), StartsWith("NumIters,Seconds,LearningRate,loss\r\n0.0,"));
  EXPECT_THAT(Read("train.log.test"),
              StartsWith("NumIters,Seconds,LearningRate,accuracy,loss\r\n0.0,"));
  EXPECT_THAT(Read("run.test"), StartsWith("NumIters,Seconds,LearningRate,accuracy,loss\r\n0.0,"));
  EXPECT_THAT(Read("curves.svg"), AllOf(StartsWith("<svg "), HasSubstr("train.log")));
  const Outcome again = Run({"log", "train.log", "--out=."});
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), ElementsAre(HasSubstr("--force")));
  EXPECT_EQ(Run({"log", "train.log", "--out=.", "--force"}).exit_code, 0);
  const Outcome fresh = Run({"log", "train.log", "--out=of/tables"});
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(Read("of/tables/train.log.train"), Read("train.log.train"));
  const Outcome shown = Run({"log", "train.log"});
  EXPECT_TRUE(Finds(shown.out, R"(iteration +time +accuracy +loss\n)")) << shown.out;
}

TEST_F(RunFolderTest, VerbsWithoutARunSayWhatTheyNeed) {
  for (const char* verb : {"status", "log"}) {
    const Outcome outcome = Run({verb});
    EXPECT_EQ(outcome.exit_code, 64);
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("needs a ")));
  }
  const Outcome report = Run({"report", "--out=a.html"});
  EXPECT_EQ(report.exit_code, 64);
  WriteText(job_.folder() / "other.txt", "nothing\n");
  EXPECT_EQ(Run({"log", "other.txt"}).exit_code, 65);
  EXPECT_EQ(Run({"log", "missing.log"}).exit_code, 66);
}

// The value of --color may be in upper case.
TEST_F(RunFolderTest, TheBestTestIsGreen) {
  const Outcome outcome = job_.Train({"--log=live", "--color=ALWAYS"});
  EXPECT_THAT(outcome.err, HasSubstr("\033[32miteration "));
  EXPECT_THAT(outcome.err, HasSubstr("\033[32mBest test: accuracy "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\033[32miteration 0")));
}

TEST_F(RunFolderTest, TheViewInAPipeIsAFewLines) {
  const Outcome outcome = job_.Train({"--log=live"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("log: snap.log\n"), HasSubstr("iteration 10: test accuracy"),
                    HasSubstr("iteration 10: saved snap_iter_10.solverstate\n"),
                    HasSubstr("done: 20 iterations in ")));
  EXPECT_THAT(outcome.err,
              AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\033")), Not(HasSubstr("Setting up"))));
  EXPECT_THAT(outcome.ErrLines(), SizeIs(testing::Lt(20u)));
  EXPECT_THAT(Read("snap.log"),
              AllOf(HasSubstr("Net small, phase TRAIN"), HasSubstr("Optimization Done.")));
}

TEST_F(RunFolderTest, AnErrorStandsBelowTheView) {
  job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 1e30");
  const Outcome outcome = job_.Train({"--log=live"});
  EXPECT_EQ(outcome.exit_code, 80);
  EXPECT_THAT(outcome.ErrLines().back(), StartsWith("error: iteration "));
}

}  // namespace
}  // namespace trainer

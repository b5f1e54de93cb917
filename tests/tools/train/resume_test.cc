// Runs that stop and are resumed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "job.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

// A job that does not end by itself and displays each iteration.
class SignalTest : public testing::Test {
 protected:
  SignalTest() {
    job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000000");
    job_.solver = Edited(job_.solver, "display: 5", "display: 1");
    job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 0");
    job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 100000");
    job_.Write();
  }

  // Returns the iteration that a stopped run's closing line names.
  static std::string StoppedAt(const Outcome& outcome, const std::string& signal) {
    const std::string text = signal + " stopped the run at iteration ";
    const size_t at = outcome.err.find(text);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no '" << text << "' in\n" << outcome.err;
      return "";
    }
    const size_t end = outcome.err.find(';', at);
    return outcome.err.substr(at + text.size(), end - at - text.size());
  }

  void ExpectSavedAndStopped(const Outcome& outcome, const std::string& signal, int code) {
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_THAT(outcome.Errors(), IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("] Optimization stopped early.\n"));
    const std::string name = "snap_iter_" + StoppedAt(outcome, signal);
    EXPECT_THAT(job_.Files("snap"), IsSupersetOf({name + ".caffemodel", name + ".solverstate"}));
    EXPECT_THAT(job_.Files("."), IsEmpty());
  }

  Job job_;
};

TEST_F(SignalTest, SigintSigtermSigusr1AndSigusr2SaveAndStop) {
  const std::pair<int, std::string> signals[] = {
      {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};
  for (const auto& [signal, name] : signals) {
    RunningProgram program(job_.TrainCommand(), job_.options());
    program.WaitForLine("Iteration 3 (");
    program.Signal(signal);
    ExpectSavedAndStopped(program.Wait(), name, 75);
  }
}

TEST_F(SignalTest, SighupSavesAndGoesOn) {
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 3 (");
  program.Signal(SIGHUP);
  program.WaitForLine("Snapshotting solver state");
  program.WaitForLine(" iters), loss = ");
  EXPECT_TRUE(Await([&] { return job_.Files("snap_iter_").size() == 2; }));
  program.Signal(SIGTERM);
  const Outcome outcome = program.Wait();
  ExpectSavedAndStopped(outcome, "SIGTERM", 75);
}

TEST_F(SignalTest, EffectsCanBeChosen) {
  RunningProgram program(job_.TrainCommand({"--sigint_effect=none", "--sigterm_effect=snapshot",
                                            "--sighup_effect=stop", "--stop_exit_code=0"}),
                         job_.options());
  program.WaitForLine("Iteration 3 (");
  program.Signal(SIGINT);
  program.WaitForLine("iters), loss = ");
  program.WaitForLine("iters), loss = ");
  EXPECT_THAT(job_.Files("snap"), IsEmpty());
  program.Signal(SIGTERM);
  program.WaitForLine("Snapshotting solver state");
  program.WaitForLine("iters), loss = ");
  program.Signal(SIGHUP);
  ExpectSavedAndStopped(program.Wait(), "SIGHUP", 0);
}

// Slurm warns with SIGUSR1 and sends SIGTERM at the time limit, when the snapshot may be half
// written.
TEST_F(SignalTest, SigtermAfterSigusr1LetsTheSnapshotBeWritten) {
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 3 (");
  program.Signal(SIGSTOP);
  program.Signal(SIGUSR1);
  program.Signal(SIGTERM);
  program.Signal(SIGCONT);
  const Outcome outcome = program.Wait();
  // Both signals are pending, and the system decides which thread handles which of them first.
  const bool is_term = outcome.err.find("SIGTERM stopped the run") != std::string::npos;
  ExpectSavedAndStopped(outcome, is_term ? "SIGTERM" : "SIGUSR1", 75);
  EXPECT_THAT(outcome.err, HasSubstr("; to resume it, start it again with --resume=auto: "));
  EXPECT_THAT(outcome.err, HasSubstr(" train --solver=solver.prototxt --resume=auto\n"));
}

TEST_F(SignalTest, StopsInTheMiddleOfATest) {
  job_.solver = Edited(job_.solver, "test_iter: 3", "test_iter: 100000000");
  job_.Write();
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 0, Testing net (#0)");
  program.Signal(SIGINT);
  const Outcome outcome = program.Wait();
  ExpectSavedAndStopped(outcome, "SIGINT", 75);
  EXPECT_THAT(outcome.err, HasSubstr("] Test interrupted.\n"));
}

TEST_F(SignalTest, AStoppedRunGoesOnAsIfItHadNot) {
  RunningProgram program(job_.TrainCommand(), job_.options());
  program.WaitForLine("Iteration 3 (");
  program.Signal(SIGTERM);
  const Outcome stopped = program.Wait();
  const std::string at = StoppedAt(stopped, "SIGTERM");
  ASSERT_NE(at, "");
  const std::string end = std::to_string(std::stoi(at) + 5);

  Job whole;
  whole.solver = job_.solver = Edited(job_.solver, "100000000", end);
  const Outcome resumed = job_.Train({"--snapshot=snap_iter_" + at + ".solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  ASSERT_EQ(whole.Train().exit_code, 0);
  EXPECT_EQ(ReadText(job_.folder() / "snap_iter_" + end + ".caffemodel"),
            ReadText(whole.folder() / "snap_iter_" + end + ".caffemodel"));
}

class ResumeTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(From, ResumeTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& test) { return std::string(test.param); });

// Adds a dropout mask to a net, so that a resumed run must restore it too.
std::string WithDropout(const std::string& net) {
  return Edited(net, "layer {\n  name: \"accuracy\"",
                "layer { name: \"drop\" type: \"Dropout\" bottom: \"ip\" top: \"ip\" }\n"
                "layer {\n  name: \"accuracy\"");
}

TEST_P(ResumeTest, TwentyIterationsAreTenAndTenMore) {
  Job whole(GetParam()), halves(GetParam());
  for (Job* job : {&whole, &halves}) {
    job->net = WithDropout(job->net);
    job->solver += "average_loss: 4\n";
  }
  const std::string all = whole.solver;
  const Outcome once = whole.Train();
  ASSERT_EQ(once.exit_code, 0) << once.err;
  halves.solver = Edited(all, "max_iter: 20", "max_iter: 10");
  ASSERT_EQ(halves.Train().exit_code, 0);
  halves.solver = all;
  const Outcome resumed = halves.Train({"--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;

  EXPECT_THAT(resumed.err, HasSubstr("] Resuming from snap_iter_10.solverstate\n"));
  EXPECT_EQ(LogFrom(once, "Iteration 10, Testing"), LogFrom(resumed, "Iteration 10, Testing"));
  EXPECT_GE(LogFrom(resumed, "Iteration 10, Testing").size(), 12u);
  for (const char* name : {"snap_iter_10.caffemodel", "snap_iter_20.caffemodel",
                           "snap_iter_10.solverstate", "snap_iter_20.solverstate"}) {
    const std::string bytes = ReadText(whole.folder() / name);
    EXPECT_GT(bytes.size(), 30000u) << name;
    EXPECT_TRUE(bytes == ReadText(halves.folder() / name)) << name;
  }
}

TEST_P(ResumeTest, AKilledRunGoesOnFromItsLastSnapshot) {
  Job job(GetParam());
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 100000000");
  job.solver = Edited(job.solver, "display: 5", "display: 1");
  job.solver = Edited(job.solver, "snapshot: 10", "snapshot: 2");
  job.Write();
  RunningProgram program(job.TrainCommand(), job.options());
  program.WaitForLine("snap_iter_6.solverstate");  // it waits for the previous snapshot
  program.Signal(SIGKILL);
  EXPECT_EQ(program.Wait().signal, SIGKILL);
  EXPECT_THAT(job.Files("snap_iter_4."), testing::SizeIs(2));

  job.solver = Edited(job.solver, "100000000", "12");
  const Outcome resumed = job.Train({"--snapshot=snap_iter_4.solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(job.Files("."), IsEmpty());
  Job whole(GetParam());
  whole.solver = job.solver;
  ASSERT_EQ(whole.Train().exit_code, 0);
  EXPECT_TRUE(ReadText(job.folder() / "snap_iter_12.solverstate") ==
              ReadText(whole.folder() / "snap_iter_12.solverstate"));
}

TEST(ResumeElsewhereTest, FindsTheWeightsBesideTheState) {
  Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  std::filesystem::create_directory(job.folder() / "moved");
  for (const char* name : {"snap_iter_10.caffemodel", "snap_iter_10.solverstate"}) {
    std::filesystem::rename(job.folder() / name, job.folder() / "moved/" + name);
  }
  EXPECT_EQ(job.Train({"--snapshot=moved/snap_iter_10.solverstate"}).exit_code, 0);
}

}  // namespace
}  // namespace trainer

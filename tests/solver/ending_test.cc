// Runs that end before their deadline, and snapshots at time intervals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "small_run.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kEndingFields[] = "base_lr: 0.1 lr_policy: \"fixed\" display: 1 momentum: 0.9 ";

// Sleeps in each displayed iteration, to simulate a large net.
class SlowObserver final : public TrainingObserver {
 public:
  explicit SlowObserver(milliseconds time) : time_(time) {}
  void OnIteration(const IterationReport& e) override {
    std::this_thread::sleep_for(time_);
    last = e.iter;
    if (e.iter == raise_at) raise(SIGUSR2);
  }
  void OnTestStart(int, int) override { std::this_thread::sleep_for(time_); }
  void OnSnapshot(const SnapshotReport& e) override { snapshots.push_back(e.iter); }
  void OnNote(const std::string& text) override { notes.push_back(text); }
  int last = -1, raise_at = -1;
  std::vector<int> snapshots;
  std::vector<std::string> notes;

 private:
  milliseconds time_;
};

// Makes runs with 4, 8, ... seconds until one ends in time after more than one iteration, because
// other programs may slow the short runs. Calls check(solver, observer) for that run.
void SolveInTime(const std::string& fields, milliseconds iteration,
                 const std::function<void(const Solver&, const SlowObserver&)>& check) {
  bool in_time = false;
  for (seconds time(4); !in_time && time < seconds(100); time *= 2) {
    SmallRun files(std::string(kEndingFields) + fields);
    SlowObserver observer(iteration);
    SolverOptions options;
    const auto end = steady_clock::now() + time;
    options.end = end;
    Solver solver(files.spec, options, *files.device, observer);
    EXPECT_EQ(solver.Solve(), SolveResult::kStopped);
    in_time = steady_clock::now() < end && solver.iter() > 1;
    if (in_time) check(solver, observer);
  }
  EXPECT_TRUE(in_time);
}

TEST(EndingTest, ARunStopsWithASnapshotBeforeItsTimeIsOver) {
  SolveInTime("max_iter: 1000000 ", milliseconds(50),
              [](const Solver& solver, const SlowObserver& observer) {
                EXPECT_TRUE(solver.TimeWasUp());
                EXPECT_THAT(observer.snapshots, ElementsAre(solver.iter()));
                EXPECT_THAT(observer.notes,
                            Contains(HasSubstr("The time limit of this run is near: ")));
              });
}

TEST(EndingTest, AStoppedRunAndItsRestAreOneRunBitForBit) {
  const std::string fields = std::string(kEndingFields) + "max_iter: 40 ";
  SmallRun whole(fields);
  whole.Solve();
  SmallRun files(fields);
  SlowObserver observer(milliseconds(60));
  SolverOptions options;
  options.end = steady_clock::now() + seconds(4);
  Solver first(files.spec, options, *files.device, observer);
  ASSERT_EQ(first.Solve(), SolveResult::kStopped);
  ASSERT_LT(first.iter(), 40);
  options = {};
  options.snapshot = NamesFor(files.PathOf("s"), first.iter()).state;
  SmallRun rest(fields, SmallNet(), options, files.folder_path);
  rest.Solve();
  EXPECT_EQ(rest.Weights(), whole.Weights());
}

TEST(EndingTest, ARunThatIsOutOfTimeStillDoesOneIteration) {
  SmallRun files(std::string(kEndingFields) + "max_iter: 10 ");
  SlowObserver observer(milliseconds(0));
  SolverOptions options;
  options.end = steady_clock::now() - seconds(9);
  Solver solver(files.spec, options, *files.device, observer);
  EXPECT_EQ(solver.Solve(), SolveResult::kStopped);
  EXPECT_EQ(solver.iter(), 1) << "so that a chain of jobs comes to an end";
}

TEST(EndingTest, ARunThatIsDoneIsNotStoppedByItsTime) {
  SmallRun files(std::string(kEndingFields) + "max_iter: 1 ");
  SlowObserver observer(milliseconds(0));
  SolverOptions options;
  options.end = steady_clock::now();
  Solver solver(files.spec, options, *files.device, observer);
  EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
}

TEST(EndingTest, ATestIsCutWhenTheTimeIsOver) {
  SolveInTime("max_iter: 10 test_interval: 2 test_iter: 100000000 test_initialization: false ",
              milliseconds(0), [](const Solver& solver, const SlowObserver& observer) {
                EXPECT_EQ(solver.iter(), 2);
                EXPECT_THAT(observer.snapshots, ElementsAre(2));
              });
}

TEST(EndingTest, Sigusr2SnapshotsAndStops) {
  SmallRun files(std::string(kEndingFields) + "max_iter: 10 ");
  for (const bool ignored : {false, true}) {
    SignalWatch::Effects effects;
    if (ignored) effects.sigusr2 = Request::kNone;
    SignalWatch watch(effects);
    SlowObserver observer(milliseconds(0));
    observer.raise_at = 4;
    SolverOptions options;
    options.signals = &watch;
    Solver solver(files.spec, options, *files.device, observer);
    EXPECT_EQ(solver.Solve(), ignored ? SolveResult::kFinished : SolveResult::kStopped);
    EXPECT_EQ(solver.iter(), ignored ? 10 : 5);
    EXPECT_EQ(watch.StopSignal(), ignored ? "" : "SIGUSR2");
  }
}

// A rank may receive a signal twice, because its launcher forwards the signal too.
TEST(EndingTest, TheSameSignalTwiceAtOnceIsOneSignal) {
  SignalWatch watch({});
  watch.BeginRun();
  raise(SIGTERM);
  raise(SIGTERM);
  EXPECT_EQ(watch.Poll(), Request::kStop);
  EXPECT_EQ(watch.StopSignal(), "SIGTERM");
}

// Raises `first`, waits until a repeated signal counts again, then raises `second`.
void StopTwice(int first, int second) {
  SignalWatch watch({});
  watch.BeginRun();
  raise(first);
  std::this_thread::sleep_for(milliseconds(600));
  raise(second);
  const bool stops = watch.Poll() == Request::kStop;
  std::cerr << watch.StopSignal() << (watch.TermTime() ? " and SIGTERM" : "");
  _exit(stops ? 0 : 1);
}

TEST(EndingTest, ASecondSignalOfAnotherKindLetsTheLastSnapshotBeWritten) {
  const testing::ExitedWithCode saved(0);
  EXPECT_EXIT(StopTwice(SIGUSR1, SIGTERM), saved, "SIGUSR1 and SIGTERM");  // Slurm's time limit
  EXPECT_EXIT(StopTwice(SIGINT, SIGTERM), saved, "SIGINT and SIGTERM");    // Ctrl-C in mpirun
  EXPECT_EXIT(StopTwice(SIGTERM, SIGINT), saved, "SIGTERM");
  EXPECT_EXIT(StopTwice(SIGTERM, SIGUSR2), saved, "SIGTERM");
  EXPECT_EXIT(StopTwice(SIGUSR1, SIGUSR1), saved, "SIGUSR1");  // a warning never ends a run
}

TEST(EndingTest, TheSameSignalAgainEndsTheProgramAtOnce) {
  EXPECT_EXIT(StopTwice(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(StopTwice(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

// Another rank received the signal first, and all ranks agreed on a snapshot.
TEST(EndingTest, ASnapshotThatRanksAgreedOnAnswersTheSignalOfThisOneToo) {
  SignalWatch watch({});
  watch.BeginRun();
  raise(SIGHUP);
  watch.NoteSnapshot();
  EXPECT_EQ(watch.Poll(), Request::kNone);
}

TEST(SnapshotTimeTest, SnapshotsComeByTheClockToo) {
  SmallRun files(std::string(kEndingFields) + "max_iter: 26 snapshot: 20 snapshot_every: \"1s\" ");
  SlowObserver observer(milliseconds(100));
  Solver solver(files.spec, {}, *files.device, observer);
  const auto start = steady_clock::now();
  EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
  const auto lasted = std::chrono::duration_cast<seconds>(steady_clock::now() - start).count();
  // The clock requests a snapshot near iteration 10, and `snapshot` requests iteration 20, which
  // restarts the clock. The run ends with a snapshot of iteration 26.
  EXPECT_GE(observer.snapshots.size(), 3u);
  EXPECT_LE(observer.snapshots.size(), 2u + static_cast<size_t>(lasted));
  EXPECT_THAT(observer.snapshots, Contains(20));
  EXPECT_THAT(observer.snapshots, Contains(26));
}

TEST(SnapshotInBackgroundTest, AWriteThatFailsIsTriedAgainWithoutStoppingTraining) {
  SmallRun files(std::string(kEndingFields) + "max_iter: 30 snapshot: 10 ");
  std::filesystem::create_directory(files.PathOf("disk"));
  files.spec.proto.set_snapshot_prefix(files.PathOf("disk/s"));
  SlowObserver observer(milliseconds(20));
  SolverOptions options;
  options.first_retry = options.longest_retry = milliseconds(20);
  Solver solver(files.spec, options, *files.device, observer);
  while (solver.iter() < 10) solver.Step();
  std::filesystem::rename(files.PathOf("disk"), files.PathOf("away"));
  solver.StartSnapshot();
  while (solver.iter() < 15) solver.Step();
  std::filesystem::rename(files.PathOf("away"), files.PathOf("disk"));
  // The next snapshot would replace the pending one.
  const std::string state = NamesFor(files.PathOf("disk/s"), 10).state;
  while (!std::filesystem::exists(state)) std::this_thread::yield();
  EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
  EXPECT_THAT(observer.snapshots, ElementsAre(10, 20, 30));
}

TEST(SnapshotInBackgroundTest, TheLastOneThatFailsEndsTheRun) {
  SmallRun files(std::string(kEndingFields) +
                 "max_iter: 12 snapshot: 10 snapshot_after_train: false ");
  std::filesystem::create_directory(files.PathOf("disk"));
  files.spec.proto.set_snapshot_prefix(files.PathOf("disk/s"));
  SolverOptions options;
  options.rescue.patience = milliseconds(0);
  Solver solver(files.spec, options, *files.device, files.observer);
  std::filesystem::remove(files.PathOf("disk"));
  EXPECT_EQ(ErrorOf([&] { solver.Solve(); }).first, ErrorCode::kIo);
}

// A snapshot is written from a copy while training continues.
TEST(SnapshotInBackgroundTest, ASnapshotHoldsTheWeightsOfItsIteration) {
  const std::string fields = std::string(kEndingFields) + "max_iter: 60 snapshot: 3 ";
  SmallRun run(fields);
  run.Solve();
  for (const int iter : {3, 30, 57}) {
    SmallRun other(Join(kEndingFields, "max_iter: ", iter));
    other.Solve();
    const std::string name = Join("s_iter_", iter, ".caffemodel");
    EXPECT_TRUE(ReadText(run.PathOf(name)) == ReadText(other.PathOf(name))) << iter;
  }
}

}  // namespace
}  // namespace trainer

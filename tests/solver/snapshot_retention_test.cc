// keep_last and keep_best: which snapshots stay.

#include "snapshot_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "small_run.h"
#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/in_child.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kKeptSnapshotsFields[] =
    "base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 snapshot: 2 test_interval: 4 test_iter: 2 ";

std::vector<int> Found(const std::string& prefix) {
  std::vector<int> iters;
  for (const SnapshotNames& names : FindSnapshots(prefix)) iters.push_back(names.iter);
  return iters;
}

size_t FilesOf(const std::string& folder, const std::string& start) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(start) ? 1 : 0;
  }
  return count;
}

// Tests SnapshotRetention with small files instead of snapshots.
class KeptSnapshotsTest : public testing::Test {
 protected:
  // `fields` sets keep_last and similar fields.
  std::unique_ptr<SnapshotRetention> Keep(const std::string& fields,
                                          FileOps& ops = FileOps::Posix()) {
    const std::vector<std::string> outputs = {"accuracy", "loss"};
    run_ = std::make_unique<SmallRun>(kKeptSnapshotsFields + fields, SmallNet(), SolverOptions{},
                                      folder_.path());
    return std::make_unique<SnapshotRetention>(run_->spec, outputs, ops);
  }
  std::string Prefix() const { return folder_ / "s"; }
  // Saves a snapshot and returns the iterations of the best snapshots that its state names.
  std::vector<int> Save(SnapshotRetention& kept, int iter) const {
    caffe::SolverState state;
    kept.Begin(iter, &state);
    const SnapshotNames names = NamesFor(Prefix(), iter);
    for (const std::string& file : {names.model, names.averaged, names.state}) WriteText(file, "x");
    kept.Written(names);
    std::vector<int> best;
    for (const caffe::ScoredSnapshot& one : state.best()) best.push_back(one.iter());
    return best;
  }
  static void Test(SnapshotRetention& kept, int iter, float accuracy) {
    const std::vector<ReportedValue> outputs = {{"accuracy", accuracy, 0}, {"loss", -accuracy, 1}};
    TestReport report;
    report.iter = iter;
    report.outputs = outputs;
    kept.NoteTest(report);
  }

  TempFolder folder_;
  std::unique_ptr<SmallRun> run_;
};

TEST_F(KeptSnapshotsTest, TheLastStay) {
  const auto kept = Keep("keep_last: 2 ");
  for (const int iter : {10, 20, 30, 40}) Save(*kept, iter);
  EXPECT_THAT(Found(Prefix()), ElementsAre(40, 30));
  EXPECT_EQ(FilesOf(folder_.path(), "s_iter_"), 6u) << "weights go with their state";
}

TEST_F(KeptSnapshotsTest, WithoutKeepLastAllStay) {
  const auto kept = Keep("");
  for (const int iter : {10, 20, 30}) Save(*kept, iter);
  EXPECT_THAT(Found(Prefix()), ElementsAre(30, 20, 10));
}

TEST_F(KeptSnapshotsTest, TheBestStayBesideTheLast) {
  const auto kept = Keep("keep_last: 1 keep_best: 2 ");
  std::vector<int> best;
  const std::pair<int, float> scores[] = {
      {10, 0.5f}, {20, 0.9f}, {30, 0.7f}, {40, 0.8f}, {50, 0.1f}};
  for (const auto& [iter, accuracy] : scores) {
    best = Save(*kept, iter);
    Test(*kept, iter, accuracy);  // the test follows the snapshot of the same weights
  }
  EXPECT_THAT(Found(Prefix()), ElementsAre(50, 40, 20));
  EXPECT_THAT(Save(*kept, 60), ElementsAre(20, 40));
  EXPECT_THAT(Found(Prefix()), ElementsAre(60, 40, 20));
}

TEST_F(KeptSnapshotsTest, WithoutKeepLastTheBestAndTheNewestStay) {
  const auto kept = Keep("keep_best: 1 ");
  for (const auto& [iter, accuracy] : {std::pair(10, 0.5f), {20, 0.9f}, {30, 0.7f}, {40, 0.8f}}) {
    Save(*kept, iter);
    Test(*kept, iter, accuracy);
  }
  EXPECT_THAT(Found(Prefix()), ElementsAre(40, 20));
}

TEST_F(KeptSnapshotsTest, ATestBeforeTheFirstIterationNeverCounts) {
  const auto kept = Keep("keep_last: 1 keep_best: 1 ");
  Test(*kept, 0, 1);
  EXPECT_THAT(Save(*kept, 10), IsEmpty());
  Test(*kept, 10, 0.5f);
  EXPECT_THAT(Save(*kept, 20), ElementsAre(10));
}

TEST_F(KeptSnapshotsTest, OfALossTheLowestIsTheBest) {
  const auto kept = Keep("keep_last: 1 keep_best: 1 best_output: \"loss\" ");
  for (const int iter : {10, 20, 30}) {
    Save(*kept, iter);
    Test(*kept, iter, iter == 20 ? 0.9f : 0.1f);  // the loss is the negative accuracy
  }
  Save(*kept, 40);
  EXPECT_THAT(Found(Prefix()), ElementsAre(40, 20));
}

TEST_F(KeptSnapshotsTest, WithoutATestOfItsOwnASnapshotHasTheScoreOfTheOneBefore) {
  const auto kept = Keep("keep_last: 1 keep_best: 1 ");
  Test(*kept, 10, 0.6f);
  Save(*kept, 15);
  Test(*kept, 20, 0.4f);
  Save(*kept, 25);
  Save(*kept, 30);
  EXPECT_THAT(Found(Prefix()), ElementsAre(30, 15));
}

TEST_F(KeptSnapshotsTest, EqualScoresKeepTheEarlierSnapshot) {
  const auto kept = Keep("keep_last: 1 keep_best: 1 ");
  for (const int iter : {10, 20, 30}) {
    Save(*kept, iter);
    Test(*kept, iter, 1);
  }
  EXPECT_THAT(Found(Prefix()), ElementsAre(30, 10));
}

TEST_F(KeptSnapshotsTest, WhatCannotBeRemovedIsTriedAgain) {
  const auto kept = Keep("keep_last: 1 ");
  Save(*kept, 10);
  const std::string state = NamesFor(Prefix(), 10).state;
  std::filesystem::remove(state);
  std::filesystem::create_directory(state);  // unlink cannot remove it
  Save(*kept, 20);
  std::filesystem::remove(state);
  WriteText(state, "x");
  Save(*kept, 30);
  EXPECT_THAT(Found(Prefix()), ElementsAre(30));
}

TEST_F(KeptSnapshotsTest, AKillWhileItRemovesLeavesNoWeightsWithoutAState) {
  bool lived = false;
  for (int n = 0; !lived; ++n) {
    ASSERT_LT(n, 50);
    FaultyOps ops;
    ops.fail_at = n;
    ops.die = true;
    const auto kept = Keep("keep_last: 1 ", ops);
    lived = InChild([&] {
              Save(*kept, 10);
              Save(*kept, 20);  // removes the snapshot of iteration 10
              return 0;
            }) == 0;
    RemoveStrayTemps(Prefix());  // as the next run does when it begins
    const SnapshotNames old = NamesFor(Prefix(), 10);
    const bool weights = Exists(old.model) || Exists(old.averaged);
    EXPECT_TRUE(!weights || Exists(old.state)) << "killed before call " << n;
    EXPECT_TRUE(!lived || !Exists(old.state));
    EXPECT_EQ(FilesOf(folder_.path(), ".s_iter_"), 0u) << "killed before call " << n;
  }
}

TEST_F(KeptSnapshotsTest, RefusesAnOutputThatTheTestDoesNotHave) {
  const auto [code, text] =
      ErrorOf([&] { Keep("keep_last: 1 keep_best: 1 best_output: \"acuracy\" "); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text,
              HasSubstr("the first test net has no output 'acuracy'. Did you mean 'accuracy'?"));
  EXPECT_THAT(text, HasSubstr("solver.prototxt:"));
}

TEST_F(KeptSnapshotsTest, RefusesToCompareWithoutTests) {
  const std::string fields =
      "base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 keep_last: 1 keep_best: 1 ";
  const auto [code, text] = ErrorOf([&] { SmallRun run(fields); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(text, HasSubstr("keep_best compares tests"));
}

// Whole runs.

TEST(KeptSnapshotsOfRunTest, ARunRemovesItsOwn) {
  SmallRun run(std::string(kKeptSnapshotsFields) + "keep_last: 2 ");
  run.Solve();
  EXPECT_THAT(Found(run.PathOf("s")), ElementsAre(10, 8));
  EXPECT_THAT(run.observer.snapshots, ElementsAre(2, 4, 6, 8, 10));
}

TEST(KeptSnapshotsOfRunTest, AResumedRunRemovesThoseOfItsFormerSelves) {
  SmallRun first(std::string(kKeptSnapshotsFields) + "keep_last: 0 ");
  first.Solve();
  std::filesystem::remove(first.PathOf("s_iter_10.solverstate"));
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_8.solverstate");
  SmallRun second(std::string(kKeptSnapshotsFields) + "keep_last: 2 ", SmallNet(), options,
                  first.folder_path);
  second.Solve();
  EXPECT_THAT(Found(second.PathOf("s")), ElementsAre(10, 8));
}

TEST(KeptSnapshotsOfRunTest, FilesOfOtherRunsStay) {
  SmallRun other(std::string(kKeptSnapshotsFields) + "keep_last: 0 ");
  other.spec.proto.set_random_seed(77);
  SmallRun run(std::string(kKeptSnapshotsFields) + "keep_last: 1 ", SmallNet(), {},
               other.folder_path);
  {
    RecordingObserver observer;
    other.spec.proto.set_max_iter(5);
    Solver solver(other.spec, {}, *other.device, observer);
    solver.Solve();  // saves 2, 4 and 5 with another seed
  }
  ASSERT_THAT(Found(run.PathOf("s")), ElementsAre(5, 4, 2));
  WriteText(run.PathOf("s_iter_3.solverstate"), "damaged");
  run.Solve();  // replaces the snapshots of iterations 2 and 4
  EXPECT_THAT(Found(run.PathOf("s")), ElementsAre(10, 5, 3));
}

TEST(KeptSnapshotsOfRunTest, TheListOfTheBestIsSavedAndRestored) {
  const std::string fields = std::string(kKeptSnapshotsFields) + "keep_last: 1 keep_best: 3 ";
  SmallRun whole(fields);
  whole.Solve();
  const auto best_of = [](const SmallRun& run) {
    return ReadState(run.PathOf("s_iter_10.solverstate")).state.best();
  };
  const auto expected = best_of(whole);
  EXPECT_EQ(expected.size(), 3);

  SmallRun half(fields);
  half.spec.proto.set_max_iter(6);
  half.Solve();
  SolverOptions options;
  options.snapshot = half.PathOf("s_iter_6.solverstate");
  SmallRun rest(fields, SmallNet(), options, half.folder_path);
  rest.Solve();
  const auto resumed = best_of(rest);
  ASSERT_EQ(resumed.size(), expected.size());
  for (int i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(resumed[i].iter(), expected[i].iter());
    EXPECT_EQ(resumed[i].value(), expected[i].value());
  }
}

}  // namespace
}  // namespace trainer

// The links to the newest and to the best snapshot.

#include "snapshot_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "small_run.h"
#include "snapshot_retention.h"
#include "support/faulty_ops.h"
#include "support/log_collector.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kLinkedFields[] =
    "base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 snapshot: 2 test_interval: 2 test_iter: 2 ";

// Returns the target of a link, or "" if there is none.
std::string TargetOf(const std::string& link) {
  std::error_code failed;
  return std::filesystem::read_symlink(link, failed).string();
}

// Tests SnapshotRetention with small files instead of snapshots.
class SnapshotLinksTest : public testing::Test {
 protected:
  std::unique_ptr<SnapshotRetention> Keep(const std::string& fields,
                                          FileOps& ops = FileOps::Posix()) {
    const std::vector<std::string> outputs = {"accuracy", "loss"};
    run_ = std::make_unique<SmallRun>(kLinkedFields + fields, SmallNet(), SolverOptions{},
                                      folder_.path());
    return std::make_unique<SnapshotRetention>(run_->spec, outputs, ops);
  }
  void Save(SnapshotRetention& kept, int iter, const std::string& end = "") const {
    caffe::SolverState state;
    kept.Begin(iter, &state);
    SnapshotNames names = NamesFor(folder_ / "s", iter);
    for (std::string* file : {&names.model, &names.averaged, &names.state}) {
      *file += end;
      WriteText(*file, "x");
    }
    kept.Written(names);
  }
  static void Test(SnapshotRetention& kept, int iter, float accuracy) {
    const std::vector<ReportedValue> outputs = {{"accuracy", accuracy, 0}};
    TestReport report;
    report.iter = iter;
    report.outputs = outputs;
    kept.NoteTest(report);
  }
  std::string Last() const { return TargetOf(folder_ / "s_last.solverstate"); }
  std::string Best() const { return TargetOf(folder_ / "s_best.caffemodel"); }

  TempFolder folder_;
  std::unique_ptr<SmallRun> run_;
};

TEST_F(SnapshotLinksTest, LeadToTheNewestAndToTheBest) {
  const auto kept = Keep("keep_best: 1 ");
  Save(*kept, 2);
  EXPECT_EQ(Last(), "s_iter_2.solverstate") << "relative, so that a moved folder keeps its links";
  EXPECT_EQ(Best(), "") << "there is no test yet";
  Test(*kept, 2, 0.5f);
  EXPECT_EQ(Best(), "s_iter_2.caffemodel");
  Save(*kept, 4);
  Test(*kept, 4, 0.7f);
  Save(*kept, 6);
  Test(*kept, 6, 0.6f);
  EXPECT_EQ(Last(), "s_iter_6.solverstate");
  EXPECT_EQ(Best(), "s_iter_4.caffemodel");
  EXPECT_TRUE(Exists(folder_ / "s_best.caffemodel")) << "keep_best keeps it";
}

TEST_F(SnapshotLinksTest, WithoutKeepBestAndPatienceNoneIsTheBest) {
  const auto kept = Keep("");
  std::filesystem::create_symlink("s_iter_9.caffemodel", folder_ / "s_best.caffemodel");
  Save(*kept, 2);
  Test(*kept, 2, 0.5f);
  EXPECT_EQ(Last(), "s_iter_2.solverstate");
  EXPECT_EQ(Best(), "") << "that of an earlier run is removed";
}

TEST_F(SnapshotLinksTest, TheBestOfThoseThatStay) {
  const auto kept = Keep("keep_last: 2 patience: 9 ");
  const std::pair<int, float> scores[] = {{2, 0.9f}, {4, 0.7f}, {6, 0.8f}, {8, 0.1f}};
  for (const auto& [iter, accuracy] : scores) {
    Save(*kept, iter);
    Test(*kept, iter, accuracy);
    EXPECT_TRUE(Exists(folder_ / "s_best.caffemodel")) << "never leads nowhere";
    EXPECT_TRUE(Exists(folder_ / "s_last.solverstate"));
  }
  EXPECT_EQ(Best(), "s_iter_6.caffemodel");
}

TEST_F(SnapshotLinksTest, OfAveragedWeightsTheAveragedAreTheBest) {
  const auto kept = Keep("keep_best: 1 ema_decay: 0.9 ");
  Save(*kept, 2);
  Test(*kept, 2, 0.5f);
  EXPECT_EQ(Best(), "s_iter_2.averaged.caffemodel");
}

TEST_F(SnapshotLinksTest, OfHdf5SnapshotsHaveItsSuffix) {
  const auto kept = Keep("snapshot_format: HDF5 keep_best: 1 ");
  Save(*kept, 2, ".h5");
  Test(*kept, 2, 0.5f);
  EXPECT_EQ(TargetOf(folder_ / "s_last.solverstate.h5"), "s_iter_2.solverstate.h5");
  EXPECT_EQ(TargetOf(folder_ / "s_best.caffemodel.h5"), "s_iter_2.caffemodel.h5");
}

TEST_F(SnapshotLinksTest, AUsersFileStays) {
  const auto kept = Keep("");
  WriteText(folder_ / "s_last.solverstate", "mine");
  const LogCollector log;
  Save(*kept, 2);
  Save(*kept, 4);
  EXPECT_EQ(ReadText(folder_ / "s_last.solverstate"), "mine");
  EXPECT_THAT(log.lines, Contains(HasSubstr("a file that is not a link has this name")).Times(1));
}

TEST_F(SnapshotLinksTest, AFileSystemWithoutLinksIsAWarning) {
  FaultyOps ops;
  ops.errno_value = EPERM;
  const auto kept = Keep("keep_last: 1 ", ops);
  const LogCollector log;
  for (const int iter : {2, 4, 6}) {
    ops.calls = 0;
    ops.fail_at = 1;  // call 0 removes a former temporary link
    Save(*kept, iter);
    EXPECT_EQ(ops.failed_call, "symlink");
  }
  EXPECT_EQ(Last(), "");
  EXPECT_THAT(log.lines, Contains(HasSubstr("Cannot make the link '")).Times(1));
  EXPECT_THAT(FindSnapshots(folder_ / "s"), SizeIs(1)) << "keep_last works all the same";
}

TEST_F(SnapshotLinksTest, AResumedRunKnowsTheBestOfItsFormerSelves) {
  const std::string fields = std::string(kLinkedFields) + "patience: 9 ";
  SmallRun first(fields);
  first.spec.proto.set_max_iter(6);
  first.Solve();
  const std::string best = TargetOf(first.PathOf("s_best.caffemodel"));
  EXPECT_THAT(best, HasSubstr("s_iter_"));
  SolverOptions options;
  options.snapshot = first.PathOf("s_last.solverstate");
  SmallRun second(fields, SmallNet(), options, first.folder_path);
  EXPECT_EQ(second.solver->iter(), 6);
  second.Solve();
  SmallRun whole(fields);
  whole.Solve();
  EXPECT_EQ(TargetOf(second.PathOf("s_best.caffemodel")),
            TargetOf(whole.PathOf("s_best.caffemodel")));
  EXPECT_EQ(TargetOf(second.PathOf("s_last.solverstate")), "s_iter_10.solverstate");
}

TEST_F(SnapshotLinksTest, WeightsAreReadThroughTheLink) {
  SmallRun run(std::string(kLinkedFields) + "keep_best: 1 ");
  run.Solve();
  SolverOptions options;
  options.weights = {run.PathOf("s_best.caffemodel")};
  SmallRun fine_tuned(kLinkedFields, SmallNet(), options);
  options.weights = {run.PathOf(TargetOf(run.PathOf("s_best.caffemodel")))};
  SmallRun same(kLinkedFields, SmallNet(), options);
  EXPECT_EQ(fine_tuned.Weights(), same.Weights());
}

}  // namespace
}  // namespace trainer

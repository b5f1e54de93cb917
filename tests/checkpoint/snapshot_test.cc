#include "trainer/checkpoint/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/temp_folder.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SnapshotNames Save(const std::string& prefix, int iter, float value,
                   FileOps& ops = FileOps::Posix()) {
  auto net = SmallNet(value);
  auto state = SmallState(value);
  return SaveSnapshot(prefix, iter, net, state, ops);
}

// The first weight of the pair of `iter`, which must be whole.
float Value(const std::string& prefix, int iter) {
  const LoadedState loaded = ReadState(NamesFor(prefix, iter).state);
  EXPECT_EQ(loaded.state.iter(), iter);
  const float value = FirstWeight(ReadModel(loaded.model_path));
  EXPECT_EQ(loaded.state.history(0).data(0), value);
  return value;
}

class SnapshotTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string prefix_ = folder_ / "tiny";
};

TEST_F(SnapshotTest, WritesAPairUnderCaffesNames) {
  const SnapshotNames names = Save(prefix_, 500, 2);
  EXPECT_EQ(names.model, prefix_ + "_iter_500.caffemodel");
  EXPECT_EQ(names.state, prefix_ + "_iter_500.solverstate");
  EXPECT_THAT(folder_.Names(),
              ElementsAre("tiny_iter_500.caffemodel", "tiny_iter_500.solverstate"));
  EXPECT_EQ(Value(prefix_, 500), 2);
  EXPECT_EQ(ReadState(names.state).state.learned_net(), names.model);
}

TEST_F(SnapshotTest, RecordsTheSealOfItsWeights) {
  const SnapshotNames names = Save(prefix_, 500, 2);
  const caffe::SolverState state = ReadState(names.state).state;
  const caffe::NetParameter net = ReadModel(names.model);
  EXPECT_EQ(state.model_crc32c(), net.crc32c());
  EXPECT_EQ(state.model_bytes(), net.file_bytes());
}

TEST_F(SnapshotTest, FlushesAndReadsBackBothFilesBeforeItNamesEither) {
  FaultyOps ops;
  Save(prefix_, 500, 2, ops);
  EXPECT_THAT(ops.names, ElementsAre("open", "write", "fsync", "close", "open", "read", "close",  //
                                     "open", "write", "fsync", "close", "open", "read", "close",  //
                                     "rename",  // model, then state
                                     "open", "fsync", "close"));
}

TEST_F(SnapshotTest, ReplacesAPairOfTheSameIteration) {
  Save(prefix_, 500, 2);
  Save(prefix_, 500, 3);
  EXPECT_EQ(Value(prefix_, 500), 3);
  EXPECT_EQ(folder_.Names().size(), 2u);
}

TEST_F(SnapshotTest, KeepsOlderPairsAndLeavesNoPartWhicheverCallFails) {
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    for (const bool half : {false, true}) {
      const TempFolder folder;
      const std::string prefix = folder / "tiny";
      Save(prefix, 90, 90);
      FaultyOps ops;
      ops.fail_at = n;
      ops.errno_value = ENOSPC;
      ops.write_half = half;
      const auto [code, message] = ErrorOf([&] { Save(prefix, 100, 100, ops); });
      done = ops.failed_call.empty();
      SCOPED_TRACE(Join("call ", n, ": ", ops.failed_call));
      EXPECT_EQ(Value(prefix, 90), 90);
      if (folder.Names().size() == 4) {  // only the flush of the folder is left to fail then
        EXPECT_EQ(Value(prefix, 100), 100);
      } else {
        EXPECT_THAT(folder.Names(),
                    ElementsAre("tiny_iter_90.caffemodel", "tiny_iter_90.solverstate"));
        EXPECT_FALSE(done);
      }
      if (done) continue;
      EXPECT_EQ(code, ErrorCode::kIo) << message;
      EXPECT_THAT(message, HasSubstr("No space left on device; the disk is full"));
    }
  }
}

TEST_F(SnapshotTest, KeepsTheOldPairOfTheSameIterationWhicheverCallFails) {
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    const TempFolder folder;
    const std::string prefix = folder / "tiny";
    Save(prefix, 100, 1);
    FaultyOps ops;
    ops.fail_at = n;
    ErrorOf([&] { Save(prefix, 100, 2, ops); });
    done = ops.failed_call.empty();
    SCOPED_TRACE(Join("call ", n, ": ", ops.failed_call));
    const float value = Value(prefix, 100);
    EXPECT_TRUE(value == 1 || value == 2) << value;
    EXPECT_TRUE(!done || value == 2);
    EXPECT_TRUE(ops.failed_call == "unlink" || folder.Names().size() == 2);
  }
}

SnapshotNames SaveAveraged(const std::string& prefix, int iter, float value,
                           FileOps& ops = FileOps::Posix()) {
  auto net = SmallNet(value), averaged = SmallNet(-value);
  auto state = SmallState(value);
  return SaveSnapshot(prefix, iter, net, state, ops, &averaged);
}

TEST_F(SnapshotTest, WritesAveragedWeightsBesideThePairAndRecordsTheirSeal) {
  const SnapshotNames names = SaveAveraged(prefix_, 500, 2);
  EXPECT_THAT(folder_.Names(),
              ElementsAre("tiny_iter_500.averaged.caffemodel", "tiny_iter_500.caffemodel",
                          "tiny_iter_500.solverstate"));
  const auto newest = NewestSnapshot(prefix_);
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->averaged_path, names.averaged);
  const caffe::NetParameter averaged = ReadModel(names.averaged);
  EXPECT_EQ(FirstWeight(averaged), -2);
  EXPECT_EQ(newest->state.averaged_crc32c(), averaged.crc32c());
  EXPECT_EQ(newest->state.averaged_bytes(), averaged.file_bytes());
  EXPECT_EQ(Value(prefix_, 500), 2);
}

TEST_F(SnapshotTest, KeepsTheOldThreeFilesOfTheSameIterationWhicheverCallFails) {
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    const TempFolder folder;
    const std::string prefix = folder / "tiny";
    SaveAveraged(prefix, 100, 1);
    FaultyOps ops;
    ops.fail_at = n;
    ErrorOf([&] { SaveAveraged(prefix, 100, 2, ops); });
    done = ops.failed_call.empty();
    SCOPED_TRACE(Join("call ", n, ": ", ops.failed_call));
    const float value = Value(prefix, 100);
    EXPECT_TRUE(value == 1 || value == 2) << value;
    EXPECT_EQ(FirstWeight(ReadModel(NamesFor(prefix, 100).averaged)), -value);
    EXPECT_TRUE(!done || value == 2);
    EXPECT_TRUE(ops.failed_call == "unlink" || folder.Names().size() == 3);
  }
}

TEST_F(SnapshotTest, LeavesNoAveragedWeightsWhicheverCallFails) {
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    const TempFolder folder;
    FaultyOps ops;
    ops.fail_at = n;
    ErrorOf([&] { SaveAveraged(folder / "tiny", 100, 2, ops); });
    done = ops.failed_call.empty();
    const size_t files = folder.Names().size();
    EXPECT_TRUE(files == 0 || files == 3) << "call " << n << ": " << ops.failed_call;
  }
}

TEST_F(SnapshotTest, StepsBackWhenAveragedWeightsAreMissing) {
  SaveAveraged(prefix_, 10, 1);
  SaveAveraged(prefix_, 20, 2);
  std::filesystem::remove(NamesFor(prefix_, 20).averaged);
  EXPECT_EQ(NewestSnapshot(prefix_)->state.iter(), 10);
}

TEST_F(SnapshotTest, KeepsOlderPairsWhenEveryCallFailsFromOneOn) {
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    const TempFolder folder;
    const std::string prefix = folder / "tiny";
    Save(prefix, 90, 90);
    FaultyOps ops;
    ops.fail_at = n;
    ops.and_after = true;
    const auto [code, message] = ErrorOf([&] { Save(prefix, 100, 100, ops); });
    done = ops.failed_call.empty();
    SCOPED_TRACE(Join("call ", n, ": ", ops.failed_call));
    EXPECT_EQ(code, done ? ErrorCode::kInternal : ErrorCode::kIo);
    EXPECT_EQ(Value(prefix, 90), 90);
    const auto newest = NewestSnapshot(prefix);
    ASSERT_TRUE(newest.has_value());
    EXPECT_THAT(newest->state.iter(), testing::AnyOf(90, 100));
  }
}

TEST_F(SnapshotTest, RefusesAMissingFolder) {
  const auto [code, message] = ErrorOf([&] { Save(folder_ / "none/tiny", 1, 1); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("none/tiny_iter_1.caffemodel: cannot create: No such file or "
                                 "directory; create the folder first"));
}

TEST_F(SnapshotTest, ListsStatesByNumberNotByText) {
  for (const int iter : {9, 100, 20}) Save(prefix_, iter, 1);
  for (const char* other :
       {"tiny_iter_.solverstate", "tiny_iter_x7.solverstate", "tiny_iter_007.solverstate",
        "tiny_iter_-7.solverstate", "tiny2_iter_7.solverstate", "tiny_iter_8.caffemodel",
        "tiny_iter_99999999999.solverstate", "tiny_iter_7.solverstate.bak"}) {
    WriteText(folder_ / other, "x");
  }
  std::vector<int> iters;
  for (const SnapshotNames& names : FindSnapshots(prefix_)) iters.push_back(names.iter);
  EXPECT_THAT(iters, ElementsAre(100, 20, 9));
  EXPECT_TRUE(FindSnapshots(folder_ / "none/tiny").empty());
}

TEST_F(SnapshotTest, StepsBackToTheNewestUsablePairAndSaysSo) {
  for (const int iter : {10, 20, 30, 40}) Save(prefix_, iter, 1);
  WriteText(NamesFor(prefix_, 40).state, "cut");
  std::filesystem::remove(NamesFor(prefix_, 30).model);
  testing::internal::CaptureStderr();
  const auto newest = NewestSnapshot(prefix_);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->state.iter(), 20);
  EXPECT_THAT(log, HasSubstr("Snapshot of iteration 40 is not usable: "));
  EXPECT_THAT(log, HasSubstr("Snapshot of iteration 30 is not usable: "));
}

TEST_F(SnapshotTest, FindsNothingOnlyWhereThereIsNothing) {
  EXPECT_FALSE(NewestSnapshot(prefix_).has_value());
  Save(prefix_, 10, 1);
  WriteText(NamesFor(prefix_, 10).model, "cut");
  const auto [code, message] = ErrorOf([&] { NewestSnapshot(prefix_); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("none of the 1 snapshots of '" + prefix_ + "' is usable"));
}

}  // namespace
}  // namespace trainer

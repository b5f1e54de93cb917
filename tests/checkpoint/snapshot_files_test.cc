#include "trainer/checkpoint/snapshot_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SnapshotTest : public testing::TestWithParam<SnapshotFormat> {
 protected:
  static SnapshotNames Save(const std::string& prefix, int iter, float value,
                            FileOps& ops = FileOps::Posix()) {
    auto net = SmallNet(value);
    auto state = SmallState(value);
    return SaveSnapshot(prefix, iter, net, state, ops, nullptr, GetParam());
  }
  static SnapshotNames SaveAveraged(const std::string& prefix, int iter, float value,
                                    FileOps& ops = FileOps::Posix()) {
    auto net = SmallNet(value), averaged = SmallNet(-value);
    auto state = SmallState(value);
    return SaveSnapshot(prefix, iter, net, state, ops, &averaged, GetParam());
  }
  static SnapshotNames Names(const std::string& prefix, int iter) {
    return NamesFor(prefix, iter, GetParam());
  }
  // Returns the first weight of the pair of `iter`. The pair must be complete.
  static float Value(const std::string& prefix, int iter) {
    const LoadedState loaded = ReadState(Names(prefix, iter).state);
    EXPECT_EQ(loaded.state.iter(), iter);
    const float value = FirstWeight(ReadModel(loaded.model_path));
    EXPECT_EQ(loaded.state.history(0).data(0), value);
    return value;
  }
  // Returns the checksum in a file's seal.
  static uint32_t StoredChecksum(const std::string& path) {
    const std::string bytes = ReadText(path);
    const size_t at = GetParam() == SnapshotFormat::kHdf5 ? 56 : bytes.size() - 4;
    uint32_t crc = 0;
    std::memcpy(&crc, bytes.data() + at, sizeof(crc));
    return crc;
  }
  // Returns the suffix of file names in this format.
  static std::string End() { return GetParam() == SnapshotFormat::kHdf5 ? ".h5" : ""; }

  TempFolder folder_;
  const std::string prefix_ = folder_ / "tiny";
};

INSTANTIATE_TEST_SUITE_P(As, SnapshotTest, BothFormats(), NameOfFormat);

TEST_P(SnapshotTest, WritesAPairUnderCaffesNames) {
  const SnapshotNames names = Save(prefix_, 500, 2);
  EXPECT_EQ(names.model, prefix_ + "_iter_500.caffemodel" + End());
  EXPECT_EQ(names.state, prefix_ + "_iter_500.solverstate" + End());
  EXPECT_THAT(folder_.Names(),
              ElementsAre("tiny_iter_500.caffemodel" + End(), "tiny_iter_500.solverstate" + End()));
  EXPECT_EQ(Value(prefix_, 500), 2);
  EXPECT_EQ(ReadState(names.state).state.learned_net(), names.model);
}

TEST_P(SnapshotTest, RecordsTheSealOfItsWeights) {
  const SnapshotNames names = Save(prefix_, 500, 2);
  const caffe::SolverState state = ReadState(names.state).state;
  EXPECT_EQ(state.model_bytes(), std::filesystem::file_size(names.model));
  EXPECT_EQ(state.model_crc32c(), StoredChecksum(names.model));
}

TEST_P(SnapshotTest, FlushesAndReadsBackBothFilesBeforeItNamesEither) {
  FaultyOps ops;
  Save(prefix_, 500, 2, ops);
  EXPECT_THAT(ops.names, ElementsAre("open", "write", "fsync", "close", "open", "read", "close",  //
                                     "open", "write", "fsync", "close", "open", "read", "close",  //
                                     "rename",  // model, then state
                                     "open", "fsync", "close"));
}

TEST_P(SnapshotTest, ReplacesAPairOfTheSameIteration) {
  Save(prefix_, 500, 2);
  Save(prefix_, 500, 3);
  EXPECT_EQ(Value(prefix_, 500), 3);
  EXPECT_EQ(folder_.Names().size(), 2u);
}

TEST_P(SnapshotTest, KeepsOlderPairsAndLeavesNoPartWhicheverCallFails) {
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
      if (folder.Names().size() == 4) {  // then only the fsync of the folder can have failed
        EXPECT_EQ(Value(prefix, 100), 100);
      } else {
        EXPECT_THAT(folder.Names(), ElementsAre("tiny_iter_90.caffemodel" + End(),
                                                "tiny_iter_90.solverstate" + End()));
        EXPECT_FALSE(done);
      }
      if (done) continue;
      EXPECT_EQ(code, ErrorCode::kIo) << message;
      EXPECT_THAT(message, HasSubstr("No space left on device; the disk is full"));
    }
  }
}

TEST_P(SnapshotTest, KeepsTheOldPairOfTheSameIterationWhicheverCallFails) {
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

TEST_P(SnapshotTest, WritesAveragedWeightsBesideThePairAndRecordsTheirSeal) {
  const SnapshotNames names = SaveAveraged(prefix_, 500, 2);
  EXPECT_THAT(folder_.Names(),
              ElementsAre("tiny_iter_500.averaged.caffemodel" + End(),
                          "tiny_iter_500.caffemodel" + End(), "tiny_iter_500.solverstate" + End()));
  const auto newest = NewestSnapshot(prefix_);
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->averaged_path, names.averaged);
  EXPECT_EQ(FirstWeight(ReadModel(names.averaged)), -2);
  EXPECT_EQ(newest->state.averaged_crc32c(), StoredChecksum(names.averaged));
  EXPECT_EQ(newest->state.averaged_bytes(), std::filesystem::file_size(names.averaged));
  EXPECT_EQ(Value(prefix_, 500), 2);
}

TEST_P(SnapshotTest, KeepsTheOldThreeFilesOfTheSameIterationWhicheverCallFails) {
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
    EXPECT_EQ(FirstWeight(ReadModel(Names(prefix, 100).averaged)), -value);
    EXPECT_TRUE(!done || value == 2);
    EXPECT_TRUE(ops.failed_call == "unlink" || folder.Names().size() == 3);
  }
}

TEST_P(SnapshotTest, LeavesNoAveragedWeightsWhicheverCallFails) {
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

TEST_P(SnapshotTest, StepsBackWhenAveragedWeightsAreMissing) {
  SaveAveraged(prefix_, 10, 1);
  SaveAveraged(prefix_, 20, 2);
  std::filesystem::remove(Names(prefix_, 20).averaged);
  EXPECT_EQ(NewestSnapshot(prefix_)->state.iter(), 10);
}

TEST_P(SnapshotTest, KeepsOlderPairsWhenEveryCallFailsFromOneOn) {
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

TEST_P(SnapshotTest, RefusesAMissingFolder) {
  const auto [code, message] = ErrorOf([&] { Save(folder_ / "none/tiny", 1, 1); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message,
              HasSubstr("none/tiny_iter_1.caffemodel" + End() +
                        ": cannot create: No such file or directory; create the folder first"));
}

TEST_P(SnapshotTest, ListsStatesByNumberNotByText) {
  for (const int iter : {9, 100, 20}) Save(prefix_, iter, 1);
  for (const char* other :
       {"tiny_iter_.solverstate", "tiny_iter_x7.solverstate", "tiny_iter_007.solverstate",
        "tiny_iter_-7.solverstate", "tiny2_iter_7.solverstate", "tiny_iter_8.caffemodel",
        "tiny_iter_99999999999.solverstate", "tiny_iter_7.solverstate.bak", "tiny_iter_7.h5",
        "tiny_iter_007.solverstate.h5", "tiny_iter_7.solverstate.h5.h5"}) {
    WriteText(folder_ / other, "x");
  }
  std::vector<int> iters;
  for (const SnapshotNames& names : FindSnapshots(prefix_)) iters.push_back(names.iter);
  EXPECT_THAT(iters, ElementsAre(100, 20, 9));
  EXPECT_TRUE(FindSnapshots(folder_ / "none/tiny").empty());
}

TEST_P(SnapshotTest, StepsBackToTheNewestUsablePairAndSaysSo) {
  for (const int iter : {10, 20, 30, 40}) Save(prefix_, iter, 1);
  WriteText(Names(prefix_, 40).state, "cut");
  std::filesystem::remove(Names(prefix_, 30).model);
  testing::internal::CaptureStderr();
  const auto newest = NewestSnapshot(prefix_);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->state.iter(), 20);
  EXPECT_THAT(log, HasSubstr("The snapshot of iteration 40 cannot be used: "));
  EXPECT_THAT(log, HasSubstr("The snapshot of iteration 30 cannot be used: "));
}

TEST_P(SnapshotTest, FindsNothingOnlyWhereThereIsNothing) {
  EXPECT_FALSE(NewestSnapshot(prefix_).has_value());
  Save(prefix_, 10, 1);
  WriteText(Names(prefix_, 10).model, "cut");
  const auto [code, message] = ErrorOf([&] { NewestSnapshot(prefix_); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("none of the 1 snapshots of '" + prefix_ + "' can be used"));
}

TEST_P(SnapshotTest, FindsTheNewestOfBothFormats) {
  auto net = SmallNet(4);
  auto state = SmallState(4);
  SaveSnapshot(prefix_, 10, net, state, FileOps::Posix(), nullptr, SnapshotFormat::kBinary);
  SaveSnapshot(prefix_, 20, net, state, FileOps::Posix(), nullptr, SnapshotFormat::kHdf5);
  SaveSnapshot(prefix_, 30, net, state, FileOps::Posix(), nullptr, GetParam());
  EXPECT_EQ(FindSnapshots(prefix_).size(), 3u);
  for (const int iter : {30, 20, 10}) {
    EXPECT_EQ(NewestSnapshot(prefix_)->state.iter(), iter);
    for (const SnapshotNames& names : FindSnapshots(prefix_)) {
      if (names.iter == iter && iter > 10) std::filesystem::remove(names.state);
    }
  }
}

}  // namespace
}  // namespace trainer

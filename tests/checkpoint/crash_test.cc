// Tests the files after a kill, a full disk and a size limit, with real processes and files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/in_child.h"
#include "support/temp_folder.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr int kWeights = 60000;  // large enough that kills also hit the middle of writes

int Hidden(const TempFolder& folder) {
  return static_cast<int>(
      std::ranges::count_if(folder.Names(), [](const auto& name) { return name[0] == '.'; }));
}

// Saves iterations first, first + 1, ... until the process is killed.
[[noreturn]] void SnapshotForever(const std::string& prefix, int first, SnapshotFormat format) {
  for (int iter = first;; ++iter) {
    auto net = SmallNet(static_cast<float>(iter), kWeights);
    auto state = SmallState(static_cast<float>(iter));
    SaveSnapshot(prefix, iter, net, state, FileOps::Posix(), nullptr, format);
    std::error_code ignored;  // keeps the folder from growing
    std::filesystem::remove(NamesFor(prefix, iter - 3, format).state, ignored);
    std::filesystem::remove(NamesFor(prefix, iter - 3, format).model, ignored);
  }
}

class KillTest : public testing::TestWithParam<SnapshotFormat> {};

TEST_P(KillTest, TheNewestCompletePairLoadsAfterEveryKill) {
  const TempFolder folder;
  const std::string prefix = folder / "run";
  std::mt19937 random(20240229);
  int strays = 0, last = -1;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) SnapshotForever(prefix, last + 1, GetParam());
    // The kill comes at a random time, but not before a newer pair exists.
    while (FindSnapshots(prefix).empty() || FindSnapshots(prefix).front().iter <= last) {
      ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "the child ended by itself";
      std::this_thread::yield();
    }
    usleep(random() % 8000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);

    const int found = FindSnapshots(prefix).front().iter;
    const auto newest = NewestSnapshot(prefix);
    ASSERT_TRUE(newest.has_value());
    ASSERT_EQ(newest->state.iter(), found) << "a state was in place before its pair was whole";
    ASSERT_GT(found, last);
    const auto net = ReadModel(newest->model_path);
    ASSERT_EQ(FirstWeight(net), static_cast<float>(found));
    ASSERT_EQ(net.layer(0).blobs(0).data_size(), kWeights);
    ASSERT_EQ(newest->state.history(0).data(0), static_cast<float>(found));
    const int hidden = Hidden(folder);
    strays += hidden;
    ASSERT_LE(hidden, 2);
    ASSERT_EQ(RemoveStrayTemps(prefix), hidden);
    ASSERT_EQ(Hidden(folder), 0);
    last = found;
  }
  RecordProperty("kills_that_left_a_temporary_file", strays);
}

// Kills a child before call n of the snapshot of iteration 2, for every n.
class KillAtEveryCallTest : public testing::TestWithParam<SnapshotFormat> {
 protected:
  // Returns whether the child survived to the end.
  bool Snapshot(const std::string& prefix, int n) {
    const int status = InChild([&] {
      FaultyOps ops;
      ops.fail_at = n;
      ops.die = true;
      auto net = SmallNet(2);
      auto state = SmallState(2);
      SaveSnapshot(prefix, 2, net, state, ops, nullptr, GetParam());
      return 0;
    });
    EXPECT_TRUE(status == 0 || status == 128 + SIGKILL) << status;
    return status == 0;
  }

  void Save(const std::string& prefix, int iter) {
    auto net = SmallNet(1);
    auto state = SmallState(1);
    SaveSnapshot(prefix, iter, net, state, FileOps::Posix(), nullptr, GetParam());
  }
};

TEST_P(KillAtEveryCallTest, ANewPairIsThereOrTheOldOneIsTheNewest) {
  bool lived = false;
  for (int n = 0; !lived; ++n) {
    ASSERT_LT(n, 100);
    const TempFolder folder;
    Save(folder / "run", 1);
    lived = Snapshot(folder / "run", n);
    const auto newest = NewestSnapshot(folder / "run");
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(newest->state.iter(), FindSnapshots(folder / "run").front().iter) << n;
    EXPECT_TRUE(!lived || newest->state.iter() == 2);
    RemoveStrayTemps(folder / "run");
    EXPECT_EQ(Hidden(folder), 0);
  }
}

TEST_P(KillAtEveryCallTest, AnOverwrittenPairNeverLoadsAsAMixture) {
  bool lived = false;
  for (int n = 0; !lived; ++n) {
    ASSERT_LT(n, 100);
    const TempFolder folder;
    Save(folder / "run", 1);
    Save(folder / "run", 2);
    lived = Snapshot(folder / "run", n);
    const auto newest = NewestSnapshot(folder / "run");
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(FirstWeight(ReadModel(newest->model_path)), newest->state.history(0).data(0)) << n;
    RemoveStrayTemps(folder / "run");
    EXPECT_EQ(Hidden(folder), 0);
  }
}

// Saves a small pair and then a large one, which must fail, and checks what is left. Returns 0, or
// the number of the step that failed.
int SmallThenTooLarge(const std::string& prefix, SnapshotFormat format) {
  FileOps& ops = FileOps::Posix();
  auto small = SmallNet(1);
  auto large = SmallNet(2, 2000000);
  auto state = SmallState(1);
  SaveSnapshot(prefix, 1, small, state, ops, nullptr, format);
  const auto [code, message] =
      ErrorOf([&] { SaveSnapshot(prefix, 2, large, state, ops, nullptr, format); });
  if (code != ErrorCode::kIo) return 1;
  if (message.find("disk is full") == std::string::npos &&
      message.find("ulimit -f") == std::string::npos) {
    return 2;
  }
  if (FindSnapshots(prefix).size() != 1) return 3;
  if (NewestSnapshot(prefix)->state.iter() != 1) return 4;
  SaveSnapshot(prefix, 3, small, state, ops, nullptr, format);  // the remaining files are usable
  if (RemoveStrayTemps(prefix) != 0) return 5;
  return ErrorOf([&] { ProbeWritable(prefix, 8000000); }).first == ErrorCode::kIo ? 0 : 6;
}

class DiskFullTest : public testing::TestWithParam<SnapshotFormat> {};

TEST_P(DiskFullTest, ASizeLimitOfTheShellLeavesTheOldPair) {
  const TempFolder folder;
  EXPECT_EQ(
      InChildWithSizeLimit(1 << 20, [&] { return SmallThenTooLarge(folder / "run", GetParam()); }),
      0);
  EXPECT_EQ(folder.Names().size(), 4u);
}

TEST_P(DiskFullTest, AFullFileSystemLeavesTheOldPair) {
  const TempFolder folder;
  if (mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  EXPECT_EQ(InChild([&] { return SmallThenTooLarge(folder / "run", GetParam()); }), 0);
  EXPECT_EQ(folder.Names().size(), 4u);
  umount(folder.path().c_str());
}

TEST_P(DiskFullTest, AReadOnlyFileSystemIsAMatterOfTheDisk) {
  const TempFolder folder;
  if (mount("none", folder.path().c_str(), "tmpfs", MS_RDONLY, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a file system needs root";
  }
  auto net = SmallNet(1);
  auto state = SmallState(1);
  const auto [code, message] = ErrorOf(
      [&] { SaveSnapshot(folder / "run", 1, net, state, FileOps::Posix(), nullptr, GetParam()); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("Read-only file system; choose a folder on a disk"));
  const auto [probe, ignored] = ErrorOf([&] { ProbeWritable(folder / "run", 1); });
  EXPECT_EQ(probe, ErrorCode::kIo);
  umount(folder.path().c_str());
}

INSTANTIATE_TEST_SUITE_P(As, KillTest, BothFormats(), NameOfFormat);
INSTANTIATE_TEST_SUITE_P(As, KillAtEveryCallTest, BothFormats(), NameOfFormat);
INSTANTIATE_TEST_SUITE_P(As, DiskFullTest, BothFormats(), NameOfFormat);

}  // namespace
}  // namespace trainer

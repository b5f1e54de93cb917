// Tests the folder of snapshots before a run: the write probe and the removal of stray files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/in_child.h"
#include "support/temp_folder.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Returns the process id of a process that has ended.
pid_t GonePid() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

std::string HostAndPidSnapshotFolder(pid_t pid) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return Join(host, ".", pid);
}

TEST(ProbeWritableTest, AcceptsAUsableFolderAndLeavesNothing) {
  const TempFolder folder;
  ProbeWritable(folder / "lenet", 1000000);
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(ProbeWritableTest, NamesTheMissingFolder) {
  const TempFolder folder;
  const auto [code, message] = ErrorOf([&] { ProbeWritable(folder / "none/lenet", 1); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_EQ(message, (folder / "none") +
                         ": the folder for snapshots does not exist; create it (mkdir -p) or set "
                         "another snapshot_prefix");
}

TEST(ProbeWritableTest, RefusesAFileAsFolder) {
  const TempFolder folder;
  WriteText(folder / "file", "");
  const auto [code, message] = ErrorOf([&] { ProbeWritable(folder / "file/lenet", 1); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("is not a folder"));
}

TEST(ProbeWritableTest, RefusesMoreThanIsFreeWithBothFigures) {
  const TempFolder folder;
  class NearlyFull : public FileOps {
   public:
    int FreeBytes(const std::string&, uint64_t* bytes) override {
      *bytes = 1500000;
      return 0;
    }
  };
  NearlyFull ops;
  ProbeWritable(folder / "lenet", 1500000, ops);
  const auto [code, message] = ErrorOf([&] { ProbeWritable(folder / "lenet", 240000000, ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("a snapshot needs 240 MB but only 1.5 MB are free"));
}

TEST(ProbeWritableTest, ReportsWhicheverCallFails) {
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 20);
    const TempFolder folder;
    FaultyOps ops;
    ops.fail_at = n;
    ops.errno_value = EDQUOT;
    const auto [code, message] = ErrorOf([&] { ProbeWritable(folder / "p", 10000, ops); });
    if (ops.failed_call.empty()) break;
    SCOPED_TRACE(ops.failed_call);
    EXPECT_EQ(code, ErrorCode::kIo);
    EXPECT_THAT(message, HasSubstr("disk quota is used up"));
    EXPECT_EQ(folder.Names().size(), ops.failed_call == "unlink" ? 1u : 0u);
  }
}

// A read-only mount may become writable again, so the error is not about permissions.
TEST(ProbeWritableTest, GivesTheCodeOfTheDiskForAReadOnlyMount) {
  const TempFolder folder;
  FaultyOps ops;
  ops.fail_at = 1;
  ops.errno_value = EROFS;
  const auto [code, message] = ErrorOf([&] { ProbeWritable(folder / "p", 10, ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("Read-only file system"));
}

TEST(ProbeWritableTest, WorksWhereSpaceCannotBeReserved) {
  const TempFolder folder;
  FaultyOps ops;
  ops.fail_at = 4;
  ops.errno_value = EOPNOTSUPP;
  ProbeWritable(folder / "p", 10000, ops);
  EXPECT_EQ(ops.failed_call, "allocate");
}

TEST(ProbeWritableTest, SeesTheShellsSizeLimit) {
  const TempFolder folder;
  EXPECT_EQ(InChildWithSizeLimit(10000,
                                 [&] {
                                   ProbeWritable(folder / "p", 9000);
                                   const auto result =
                                       ErrorOf([&] { ProbeWritable(folder / "p", 20000); });
                                   return static_cast<int>(result.first);
                                 }),
            74);
}

TEST(CheckWritableTest, TellsTheSameWithoutWriting) {
  const TempFolder folder;
  FaultyOps ops;
  CheckWritable(folder / "lenet", 1000000, ops);
  EXPECT_THAT(ops.names, testing::ElementsAre("statvfs"));
  EXPECT_THAT(ErrorOf([&] { CheckWritable(folder / "none/lenet", 1); }).second,
              HasSubstr("the folder for snapshots does not exist"));
  EXPECT_THAT(ErrorOf([&] { CheckWritable(folder / "lenet", UINT64_MAX); }).second,
              HasSubstr("are free"));
  EXPECT_EQ(
      InChild([&] {
        if (chmod(folder.path().c_str(), 0555) != 0 || (geteuid() == 0 && seteuid(65534) != 0))
          return 1;
        return static_cast<int>(ErrorOf([&] { CheckWritable(folder / "lenet", 1); }).first);
      }),
      static_cast<int>(ErrorCode::kNoPermission));
}

TEST(CheckNameLengthTest, CountsTheHiddenNameToo) {
  const TempFolder folder;
  const std::string tail = ".tmp." + HostAndPidSnapshotFolder(getpid());
  const size_t most = 255 - 1 - tail.size();  // 255 bytes with the leading dot
  CheckNameLength(folder / std::string(most, 'n'));
  const auto [code, message] =
      ErrorOf([&] { CheckNameLength(folder / std::string(most + 1, 'n')); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("256 bytes; names on this disk can have at most 255: choose a "
                                 "shorter one"));
  CheckNameLength(folder / ("none/" + std::string(300, 'n')));
}

TEST(RemoveStrayTempsTest, RemovesOnlyWhatADeadProcessOfThisHostLeft) {
  const TempFolder folder;
  const std::string dead = HostAndPidSnapshotFolder(GonePid());
  WriteText(folder / (".lenet_iter_5.caffemodel.tmp." + dead), "x");
  WriteText(folder / (".lenet_iter_6.solverstate.tmp." + HostAndPidSnapshotFolder(getpid())), "x");
  const std::vector<std::string> kept = {
      ".lenet_iter_5.caffemodel.tmp." + HostAndPidSnapshotFolder(getppid()),
      ".lenet_iter_5.caffemodel.tmp.otherhost.1",
      ".lenet_iter_5.caffemodel.tmp." + dead + "x",
      ".other_iter_5.caffemodel.tmp." + dead,
      "lenet_iter_5.caffemodel",
      "lenet_iter_5.caffemodel.tmp." + dead,
  };
  for (const std::string& name : kept) WriteText(folder / name, "x");
  EXPECT_EQ(RemoveStrayTemps(folder / "lenet"), 2);
  EXPECT_THAT(folder.Names(), testing::UnorderedElementsAreArray(kept));
  EXPECT_EQ(RemoveStrayTemps(folder / "none/lenet"), 0);
}

}  // namespace
}  // namespace trainer

#include "trainer/base/file/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/in_child.h"
#include "support/scoped.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void WriteOnce(const std::string& path, const std::string& content,
               FileOps& ops = FileOps::Posix()) {
  AtomicFile file(path, ops);
  file.Append(content.data(), content.size());
  file.Commit();
}

std::string HostAndPidAtomicFile(pid_t pid) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return Join(host, ".", pid);
}

TEST(AtomicFileTest, WritesPiecesOfEverySizeAndTheirChecksum) {
  const TempFolder folder;
  std::string all;
  AtomicFile file(folder / "f");
  for (const size_t bytes : {0, 1, 1000, 1048575, 2, 1048576, 3, 3000000, 7}) {
    const std::string piece(bytes, static_cast<char>('a' + bytes % 26));
    file.Append(piece.data(), piece.size());
    all += piece;
  }
  EXPECT_EQ(file.size(), all.size());
  EXPECT_EQ(file.crc32c(), Crc32c(all.data(), all.size()));
  file.Commit();
  EXPECT_EQ(ReadText(folder / "f"), all);
  EXPECT_THAT(folder.Names(), ElementsAre("f"));
}

TEST(AtomicFileTest, ShowsNothingBeforeCommitAndLeavesNothingWithout) {
  const TempFolder folder;
  {
    AtomicFile file(folder / "f");
    file.Append("abc", 3);
    EXPECT_THAT(folder.Names(), ElementsAre(FileNameOf(TempPathFor(folder / "f"))));
    EXPECT_EQ(FileNameOf(file.temp_path()), ".f.tmp." + HostAndPidAtomicFile(getpid()));
  }
  EXPECT_THAT(folder.Names(), IsEmpty());
}

TEST(AtomicFileTest, HonoursTheUmask) {
  const TempFolder folder;
  const ScopedUmask umask(027);
  WriteOnce(folder / "f", "x");
  struct stat info {};
  ASSERT_EQ(stat((folder / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(AtomicFileTest, DoesNotFollowALinkUnderTheTemporaryName) {
  const TempFolder folder;
  WriteText(folder / "victim", "precious");
  ASSERT_EQ(symlink((folder / "victim").c_str(), TempPathFor(folder / "f").c_str()), 0);
  EXPECT_EQ(ErrorOf([&] { WriteOnce(folder / "f", "x"); }).first, ErrorCode::kCannotCreate);
  EXPECT_EQ(ReadText(folder / "victim"), "precious");
}

TEST(AtomicFileTest, KeepsTheOldFileWhicheverCallFails) {
  for (const bool half : {false, true}) {
    bool done = false;
    for (int n = 0; !done; ++n) {
      ASSERT_LT(n, 100);
      const TempFolder folder;
      WriteText(folder / "f", "old");
      FaultyOps ops;
      ops.fail_at = n;
      ops.write_half = half;
      ops.errno_value = ENOSPC;
      const auto [code, message] = ErrorOf([&] { WriteOnce(folder / "f", "new text", ops); });
      done = ops.failed_call.empty();
      SCOPED_TRACE(Join("call ", n, " ", ops.failed_call));
      const std::string now = ReadText(folder / "f");
      if (done) {
        EXPECT_EQ(now, "new text");
      } else {
        EXPECT_EQ(code, ErrorCode::kIo);
        EXPECT_THAT(message, HasSubstr("No space left on device; the disk is full"));
        EXPECT_THAT(message, HasSubstr(folder.path()));
        EXPECT_TRUE(now == "old" || now == "new text") << now;
      }
      EXPECT_THAT(folder.Names(), ElementsAre("f"));
    }
  }
}

// A disk that accepts every write but returns a changed byte.
class LyingDisk : public FileOps {
 public:
  ssize_t Read(int fd, void* to, size_t bytes) override {
    const ssize_t got = FileOps::Read(fd, to, bytes);
    if (got > 0) *static_cast<char*>(to) = static_cast<char>(*static_cast<char*>(to) ^ 1);
    return got;
  }
};

TEST(AtomicFileTest, NoticesADiskThatGivesBackOtherBytes) {
  const TempFolder folder;
  WriteText(folder / "f", "old");
  LyingDisk ops;
  const auto [code, message] = ErrorOf([&] { WriteOnce(folder / "f", "new", ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("returned different bytes than were written"));
  EXPECT_EQ(ReadText(folder / "f"), "old");
  EXPECT_THAT(folder.Names(), ElementsAre("f"));
}

// A disk that loses the second half of the file without an error.
class ForgetfulDisk : public FileOps {
 public:
  ssize_t Write(int fd, const void* from, size_t bytes) override {
    FileOps::Write(fd, from, bytes / 2);
    return static_cast<ssize_t>(bytes);
  }
};

TEST(AtomicFileTest, NoticesAFileThatCameOutShort) {
  const TempFolder folder;
  ForgetfulDisk ops;
  const auto [code, message] = ErrorOf([&] { WriteOnce(folder / "f", "12345678", ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("(4 of 8 bytes)"));
}

// A disk that writes one byte per call.
class SlowDisk : public FileOps {
 public:
  ssize_t Write(int fd, const void* from, size_t) override { return FileOps::Write(fd, from, 1); }
};

TEST(AtomicFileTest, GoesOnAfterAPartialWrite) {
  const TempFolder folder;
  SlowDisk ops;
  WriteOnce(folder / "f", "every byte arrives", ops);
  EXPECT_EQ(ReadText(folder / "f"), "every byte arrives");
}

TEST(AtomicFileTest, RefusesAMissingFolderAndAFileAsFolder) {
  const TempFolder folder;
  WriteText(folder / "file", "");
  const auto [code, message] = ErrorOf([&] { WriteOnce(folder / "none/f", "x"); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_EQ(message, (folder / "none/f") +
                         ": cannot create: No such file or directory; create the folder first "
                         "(mkdir -p)");
  EXPECT_EQ(ErrorOf([&] { WriteOnce(folder / "file/f", "x"); }).first, ErrorCode::kCannotCreate);
}

TEST(PlaceWholeTest, ReplacesTheOldFileOrLeavesIt) {
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 20);
    const TempFolder folder;
    WriteText(folder / "f", "old");
    WriteText(folder / "temp", "new");
    FaultyOps ops;
    ops.fail_at = n;
    const auto [code, message] = ErrorOf([&] { PlaceWhole(folder / "temp", folder / "f", ops); });
    if (ops.failed_call.empty()) {
      EXPECT_EQ(ReadText(folder / "f"), "new");
      EXPECT_THAT(ops.names,
                  ElementsAre("open", "fsync", "close", "rename", "open", "fsync", "close"));
      EXPECT_THAT(folder.Names(), ElementsAre("f"));
      break;
    }
    SCOPED_TRACE(ops.failed_call);
    EXPECT_EQ(code, ErrorCode::kIo);
    EXPECT_EQ(ReadText(folder / "f"), n <= 3 ? "old" : "new");
  }
}

TEST(AtomicFileTest, RefusesAFolderAsTarget) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "f");
  EXPECT_EQ(ErrorOf([&] { WriteOnce(folder / "f", "x"); }).first, ErrorCode::kCannotCreate);
  EXPECT_THAT(folder.Names(), ElementsAre("f"));
}

TEST(AtomicFileTest, ReportsAFullDevice) {
  class ToFull : public FileOps {
   public:
    int Open(const std::string&, int, mode_t) override {
      return FileOps::Open("/dev/full", O_WRONLY, 0);
    }
    int Unlink(const std::string&) override { return 0; }
  };
  ToFull ops;
  const auto [code, message] = ErrorOf([&] { WriteOnce("/tmp/f", "x", ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("No space left on device"));
}

TEST(AtomicFileTest, ReportsTheShellsSizeLimit) {
  const TempFolder folder;
  WriteText(folder / "f", "old");
  const int result = InChildWithSizeLimit(10000, [&] {
    const auto [code, message] = ErrorOf([&] { WriteOnce(folder / "f", std::string(20000, 'x')); });
    return message.find("ulimit -f") == std::string::npos ? 1 : static_cast<int>(code);
  });
  EXPECT_EQ(result, 74);
  EXPECT_EQ(ReadText(folder / "f"), "old");
  EXPECT_THAT(folder.Names(), ElementsAre("f"));
}

}  // namespace
}  // namespace trainer

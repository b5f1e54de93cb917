#include "trainer/base/file/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/in_child.h"
#include "support/temp_folder.h"
#include "trainer/base/file/random_access_file.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(PathTest, SplitsAtTheLastSlash) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("c"), ".");
  EXPECT_EQ(FolderOf("/c"), "/");
  EXPECT_EQ(FileNameOf("a/b/c"), "c");
  EXPECT_EQ(FileNameOf("c"), "c");
  EXPECT_EQ(FileNameOf("a/"), "");
}

TEST(PathTest, JoinsUnlessTheNameIsAbsolute) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath(".", "b"), "b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(AbsolutePath("/a/./b/../c"), "/a/c");
}

TEST(ReadFileTest, ReadsEveryByteOfALongFile) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 200000; ++i) text += static_cast<char>(i * 7);
  WriteText(folder / "long", text);
  EXPECT_EQ(ReadFile(folder / "long", 200000), text);
  EXPECT_EQ(FileSize(folder / "long"), 200000u);
  WriteText(folder / "empty", "");
  EXPECT_EQ(ReadFile(folder / "empty", 0), "");
}

TEST(ReadFileTest, RefusesAFileOverTheLimit) {
  const TempFolder folder;
  WriteText(folder / "f", "12345");
  EXPECT_EQ(ReadFile(folder / "f", 5), "12345");
  const auto [code, message] = ErrorOf([&] { ReadFile(folder / "f", 4); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("larger than 4 bytes"));
}

TEST(ReadFileTest, RefusesWhatIsNoFileWithoutWaiting) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0666), 0);
  for (const std::string& path : {std::string("/dev/zero"), folder / "pipe"}) {
    const auto [code, message] = ErrorOf([&] { ReadFile(path, 100000); });
    EXPECT_EQ(code, ErrorCode::kNoInput);
    EXPECT_THAT(message, HasSubstr(", not a file; write its content to a file first"));
    EXPECT_EQ(ErrorOf([&] { OpenForReading(path); }).first, ErrorCode::kNoInput);
    EXPECT_EQ(ErrorOf([&] { FileSize(path); }).first, ErrorCode::kNoInput);
  }
}

TEST(ReadFileTest, RefusesALargeFileBeforeItReadsIt) {
  const TempFolder folder;
  WriteText(folder / "f", "");
  std::filesystem::resize_file(folder / "f", uint64_t{1} << 40);
  EXPECT_THAT(ErrorOf([&] { ReadFile(folder / "f", uint64_t{1} << 39); }).second,
              HasSubstr("larger than"));
}

TEST(ReadFileTest, NamesTheAbsolutePathOfAMissingFile) {
  const auto [code, message] = ErrorOf([] { ReadFile("no/such/file", 10); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_EQ(message, AbsolutePath("no/such/file") + ": cannot open: No such file or directory");
  EXPECT_TRUE(message.starts_with("/"));
}

TEST(ReadFileTest, NamesTheFileThatAMissingPathNearlyNames) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "digits/train_lmdb");
  std::ofstream(folder / "digits/train_lmdb/data.mdb");
  EXPECT_EQ(DidYouMeanPath(folder / "digits/trian_lmdb"),
            " Did you mean '" + (folder / "digits/train_lmdb") + "'?");
  EXPECT_EQ(DidYouMeanPath(folder / "digist/train_lmbd"),
            " Did you mean '" + (folder / "digits/train_lmdb") + "'?");
  EXPECT_EQ(DidYouMeanPath(folder / "digits/other"), "");
  EXPECT_EQ(DidYouMeanPath(folder / "digist/other"), "");
  EXPECT_EQ(DidYouMeanPath(folder / "digits"), "") << "it is there";
  EXPECT_EQ(DidYouMeanPath(""), "");
  std::ofstream(folder / "net.prototxt");
  EXPECT_EQ(DidYouMeanPath(folder / "none.prototxt"), "") << "only the ending is alike";
  EXPECT_EQ(DidYouMeanPath(folder / "net.prototx"),
            " Did you mean '" + (folder / "net.prototxt") + "'?");
  const auto [code, message] =
      ErrorOf([&] { OpenForReading(folder / "digits/train_lmdb/dtaa.mdb"); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_THAT(message, testing::EndsWith("No such file or directory. Did you mean '" +
                                         (folder / "digits/train_lmdb/data.mdb") + "'?"));
}

TEST(ReadFileTest, ThereIsNothingAfterTheEnd) {
  const TempFolder folder;
  WriteText(folder / "f", "12345");
  char byte = 0;
  const RandomAccessFile file(folder / "f");
  EXPECT_EQ(file.Read(4, 1, &byte), 1u);
  EXPECT_EQ(byte, '5');
  EXPECT_EQ(file.Read(5, 1, &byte), 0u);
  EXPECT_EQ(file.Read(uint64_t{1} << 63, 1, &byte), 0u);
}

TEST(ReadFileTest, RefusesAFolder) {
  const auto [code, message] = ErrorOf([] { ReadFile("/tmp", 10); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_THAT(message, HasSubstr("Is a directory"));
  EXPECT_EQ(InChild([] {
              const TempFolder closed;
              if (chmod(closed.path().c_str(), 0) != 0 || (geteuid() == 0 && seteuid(65534) != 0))
                return 1;
              return static_cast<int>(ErrorOf([&] { ReadFile(closed.path(), 10); }).first);
            }),
            static_cast<int>(ErrorCode::kNoPermission));
}

TEST(ReadFileTest, ReportsAFailingRead) {
  const TempFolder folder;
  WriteText(folder / "f", "12345");
  FaultyOps ops;
  ops.fail_at = 1;
  const auto [code, message] = ErrorOf([&] { ReadFile(folder / "f", 100, ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("cannot read: Input/output error"));
}

TEST(FileErrorTest, MapsEachCauseToItsCodeAndCure) {
  const auto of = [](FileUse use, int value) {
    return ErrorOf([&] { ThrowFileError(use, "write", "/p", value); });
  };
  EXPECT_EQ(of(FileUse::kOutput, ENOSPC).first, ErrorCode::kIo);
  EXPECT_EQ(of(FileUse::kOutput, ENOSPC).second,
            "/p: cannot write: No space left on device; the disk is full: free some space or "
            "choose a folder on another disk");
  EXPECT_EQ(of(FileUse::kOutput, EDQUOT).first, ErrorCode::kIo);
  EXPECT_THAT(of(FileUse::kOutput, EDQUOT).second, HasSubstr("quota is used up"));
  EXPECT_THAT(of(FileUse::kOutput, EFBIG).second, HasSubstr("ulimit -f"));
  EXPECT_EQ(of(FileUse::kOutput, EROFS).first, ErrorCode::kIo);
  EXPECT_EQ(of(FileUse::kOutput, EACCES).first, ErrorCode::kNoPermission);
  EXPECT_EQ(of(FileUse::kInput, EACCES).first, ErrorCode::kNoPermission);
  EXPECT_EQ(of(FileUse::kOutput, ENOENT).first, ErrorCode::kCannotCreate);
  EXPECT_THAT(of(FileUse::kOutput, ENOENT).second, HasSubstr("mkdir -p"));
  EXPECT_EQ(of(FileUse::kInput, ENOENT).first, ErrorCode::kNoInput);
  EXPECT_EQ(of(FileUse::kInput, EIO).first, ErrorCode::kIo);
}

TEST(ExistsTest, TellsFilesFromFolders) {
  const TempFolder folder;
  WriteText(folder / "f", "");
  EXPECT_TRUE(Exists(folder / "f"));
  EXPECT_FALSE(IsDirectory(folder / "f"));
  EXPECT_TRUE(IsDirectory(folder.path()));
  EXPECT_FALSE(Exists(folder / "g"));
  EXPECT_FALSE(IsDirectory(folder / "f/g"));
}

}  // namespace
}  // namespace trainer

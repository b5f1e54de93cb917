// Tests which files the program writes to, and which it refuses.

#include "trainer/base/file/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;

void AppendTo(const std::string& path, const std::string& text, int flags = kAppend) {
  const FileHandle file(FileOps::Posix(), OpenOwnFile(path, flags));
  ASSERT_GE(file.get(), 0);
  ASSERT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(OutputFileTest, APlainFileIsMadeAppendedToAndReplaced) {
  const TempFolder folder;
  AppendTo(folder / "log", "one");
  AppendTo(folder / "log", "two");
  EXPECT_EQ(ReadText(folder / "log"), "onetwo");
  AppendTo(folder / "log", "three", O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_EQ(ReadText(folder / "log"), "three");
  EXPECT_EQ(OpenOwnFile(folder / "none/log", kAppend), -1);
}

TEST(OutputFileTest, NothingElseIsWrittenTo) {
  const TempFolder folder;
  WriteText(folder / "precious", "precious");
  const auto refusal = [&](const std::string& name) {
    const auto [code, message] = ErrorOf([&] { OpenOwnFile(folder / name, kAppend); });
    EXPECT_EQ(code, ErrorCode::kCannotCreate) << name;
    EXPECT_EQ(ErrorOf([&] { RequireOwnFile(folder / name); }).second, message);
    EXPECT_EQ(ReadText(folder / "precious"), "precious");
    return message;
  };
  std::filesystem::create_symlink(folder / "precious", folder / "link");
  std::filesystem::create_symlink(folder / "absent", folder / "dangling");
  std::filesystem::create_symlink(folder / "loop", folder / "loop");
  for (const char* name : {"link", "dangling", "loop"}) {
    EXPECT_THAT(refusal(name), HasSubstr("is a symbolic link, but the program writes only to"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "absent"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal("pipe"), HasSubstr("is a pipe (FIFO),"));
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THAT(refusal("folder"), HasSubstr("is a folder,"));
  EXPECT_THAT(ErrorOf([] { RequireOwnFile("/dev/full"); }).second, HasSubstr("is a device,"));
  if (geteuid() == 0) {
    WriteText(folder / "other", "");
    ASSERT_EQ(chown((folder / "other").c_str(), 65534, 65534), 0);
    EXPECT_THAT(refusal("other"), HasSubstr("is a file of another user (number 65534),"));
  }
  std::filesystem::create_hard_link(folder / "precious", folder / "second");
  EXPECT_THAT(refusal("second"), HasSubstr("is a file with 2 names (hard links),"));
}

}  // namespace
}  // namespace trainer

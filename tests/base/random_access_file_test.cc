#include "trainer/base/file/random_access_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Reads at most three bytes at a time, or fails if `error` is set.
class SlowReads : public FileOps {
 public:
  int error = 0;

  ssize_t Pread(int fd, void* to, size_t bytes, uint64_t offset) override {
    if (error == 0) return FileOps::Pread(fd, to, std::min<size_t>(bytes, 3), offset);
    errno = error;
    return -1;
  }
};

class RandomAccessFileTest : public testing::Test {
 protected:
  RandomAccessFileTest() { WriteText(path_, "0123456789"); }

  static std::string Read(const RandomAccessFile& file, uint64_t offset, uint64_t count) {
    std::string text(count, '\0');
    text.resize(file.Read(offset, count, text.data()));
    return text;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "file";
  SlowReads ops_;
};

TEST_F(RandomAccessFileTest, ReadsAtAnyOffsetAndNoFurtherThanItsEnd) {
  const RandomAccessFile file(path_);
  EXPECT_EQ(file.path(), path_);
  EXPECT_EQ(file.bytes(), 10u);
  EXPECT_EQ(Read(file, 3, 4), "3456");
  EXPECT_EQ(Read(file, 8, 4), "89");
  EXPECT_EQ(Read(file, 20, 4), "");
}

TEST_F(RandomAccessFileTest, AReadThatGivesAPartGoesOn) {
  const RandomAccessFile file(path_, ops_);
  EXPECT_EQ(Read(file, 1, 8), "12345678");
  EXPECT_EQ(Read(file, 5, 10), "56789");
}

TEST_F(RandomAccessFileTest, AReadThatFailsIsAnErrorOfTheDiskThatNamesTheFile) {
  const RandomAccessFile file(path_, ops_);
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    ops_.error = error;
    const auto [code, message] = ErrorOf([&] { Read(file, 0, 10); });
    EXPECT_EQ(code, ErrorCode::kIo);
    EXPECT_THAT(message, HasSubstr(path_ + ": cannot read: "));
  }
}

TEST_F(RandomAccessFileTest, AFileThatIsMissingIsNoInput) {
  EXPECT_EQ(ErrorOf([&] { RandomAccessFile(folder_ / "other"); }).first, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer

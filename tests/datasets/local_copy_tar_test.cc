// Tests local copies of tar shards, plain and compressed with gzip.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "storage/tar_text.h"
#include "storage/test_data.h"
#include "support/error_of.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/local_copy.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Whole(const std::string& path) { return ReadFile(path, 1 << 20); }

class StagedTarTest : public testing::Test {
 protected:
  StagedTarTest() {
    std::filesystem::create_directory(options_.folder);
    for (int i = 0; i < 3; ++i) {
      WriteBytes(folder_ / Join("t-", i, ".tar"),
                 TarSample("a", 1, 10 * i) + TarSample("b", 2, 10 * i + 1) + TarEnd());
    }
  }
  void Zip(const std::string& name) const {
    ASSERT_EQ(std::system(Join("gzip '", folder_ / name, "'").c_str()), 0);
  }
  std::vector<std::string> Samples(const std::string& source) const {
    const auto cursor = OpenCursor("TAR", source);
    std::vector<std::string> samples;
    do {
      caffe::Datum datum;
      EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      samples.push_back(Join(cursor->Key(), " ", datum.label()));
    } while (!cursor->Next());
    return samples;
  }
  // Returns the reason why the original is read.
  std::string WhyNot(const std::string& source) const {
    const auto [code, message] = ErrorOf([&] { CopyTarShardsLocally(source, options_); });
    EXPECT_EQ(code, ErrorCode::kData);
    EXPECT_TRUE(std::filesystem::is_empty(options_.folder));
    return message;
  }

  TempFolder folder_;
  LocalCopyOptions options_{folder_ / "local"};
};

TEST_F(StagedTarTest, FilesOfAPatternAreReadFromTheirCopies) {
  const std::string pattern = folder_ / "t-{0..2}.tar";
  const std::vector<std::string> want = Samples(pattern);
  {
    const auto copy = CopyTarShardsLocally(pattern, options_);
    ASSERT_NE(copy, nullptr);
    for (int i = 0; i < 3; ++i) WriteBytes(folder_ / Join("t-", i, ".tar"), "not read any more");
    EXPECT_EQ(Samples(pattern), want);
  }
  EXPECT_TRUE(std::filesystem::is_empty(options_.folder));
}

TEST_F(StagedTarTest, FilesThatGzipCompressedAreUnpackedThere) {
  Zip("t-1.tar");
  WriteBytes(folder_ / "list.txt", "t-0.tar\nt-1.tar.gz\n");
  const auto copy = CopyTarShardsLocally(folder_ / "list.txt", options_);
  ASSERT_NE(copy, nullptr);
  EXPECT_THAT(
      Samples(folder_ / "list.txt"),
      testing::ElementsAre("t-0.tar/a 0", "t-0.tar/b 1", "t-1.tar.gz/a 10", "t-1.tar.gz/b 11"));
}

TEST_F(StagedTarTest, PiecesThatGzipCompressedOneByOneAreOneFile) {
  const std::string whole = Whole(folder_ / "t-0.tar");
  WriteBytes(folder_ / "1", whole.substr(0, 700));
  WriteBytes(folder_ / "2", whole.substr(700));
  Zip("1");
  Zip("2");
  WriteBytes(folder_ / "t.tgz", Whole(folder_ / "1.gz") + Whole(folder_ / "2.gz"));
  const auto copy = CopyTarShardsLocally(folder_ / "t.tgz", options_);
  ASSERT_NE(copy, nullptr);
  EXPECT_THAT(Samples(folder_ / "t.tgz"), testing::ElementsAre("t.tgz/a 0", "t.tgz/b 1"));
}

TEST_F(StagedTarTest, AKeptCopyIsUsedAgainUntilAFileChangesOrTheCopyIsCut) {
  const std::string source = folder_ / "t-0.tar";
  options_.keep = true;
  const std::string first = CopyTarShardsLocally(source, options_)->path();
  EXPECT_EQ(CopyTarShardsLocally(source, options_)->path(), first);
  std::filesystem::resize_file(first + "/0-t-0.tar", 20);
  EXPECT_EQ(CopyTarShardsLocally(source, options_)->path(), first);
  EXPECT_EQ(Whole(first + "/0-t-0.tar"), Whole(source));
  WriteBytes(source, TarSample("c", 1, 1) + TarEnd());
  EXPECT_NE(CopyTarShardsLocally(source, options_)->path(), first);
}

TEST_F(StagedTarTest, AGzipFileThatIsCutOrDamagedIsRefusedAndLeavesNothing) {
  Zip("t-0.tar");
  const std::string path = folder_ / "t-0.tar.gz", whole = Whole(path);
  WriteBytes(path, whole.substr(0, whole.size() / 2));
  EXPECT_THAT(WhyNot(path), HasSubstr("the gzip file is damaged: the file is truncated"));
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // a byte of the checksum
  WriteBytes(path, damaged);
  EXPECT_THAT(WhyNot(path), HasSubstr("the gzip file is damaged: incorrect data check"));
}

TEST_F(StagedTarTest, AGzipBombIsRefusedAndLeavesNothing) {
  const std::string path = folder_ / "bomb.tar";
  WriteBytes(path, "");
  std::filesystem::resize_file(path, 300 << 20);
  Zip("bomb.tar");
  EXPECT_THAT(WhyNot(path + ".gz"), HasSubstr("unpacks to more than 200 times its size"));
}

}  // namespace
}  // namespace trainer

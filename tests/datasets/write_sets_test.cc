#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/file_size_limit.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class DatasetTest : public testing::TestWithParam<const char*> {
 protected:
  DigitsOptions Digits(int train, int test) {
    DigitsOptions options;
    options.folder = folder_ / "digits";
    options.backend = GetParam();
    options.train = train;
    options.test = test;
    return options;
  }
  std::string Suffix() const { return std::string(GetParam()) == "LMDB" ? "_lmdb" : "_leveldb"; }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Of, DatasetTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(DatasetTest, WritesDigitsAsCaffeWritesMnist) {
  const DigitsPaths paths = WriteDigits(Digits(30, 20));
  EXPECT_EQ(paths.train, folder_ / "digits/train" + Suffix());
  EXPECT_THAT(NamesIn(folder_ / "digits"), ElementsAre("test" + Suffix(), "train" + Suffix()));
  for (uint32_t set = 0; set < 2; ++set) {
    const auto cursor = OpenCursor(GetParam(), set == 0 ? paths.train : paths.test);
    const int count = set == 0 ? 30 : 20;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(cursor->Key(), Key8(i));
      caffe::Datum datum;
      ASSERT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      const DigitImage want = DrawDigit(1, set, static_cast<uint64_t>(i));
      EXPECT_EQ(datum.label(), want.label);
      EXPECT_EQ(datum.channels(), 1);
      EXPECT_EQ(datum.height(), 28);
      EXPECT_EQ(datum.width(), 28);
      EXPECT_EQ(datum.data(), std::string(want.pixels.begin(), want.pixels.end()));
      ASSERT_EQ(cursor->Next(), i + 1 == count);
    }
  }
}

TEST_P(DatasetTest, WritesIdxFilesInTheirOrder) {
  const auto big = [](int value) { return std::string("\0\0\0", 3) + static_cast<char>(value); };
  WriteBytes(folder_ / "i", std::string("\0\0\x08\x03", 4) + big(2) + big(2) + big(1) + "abcd");
  WriteBytes(folder_ / "l", std::string("\0\0\x08\x01", 4) + big(2) + "\x05\x03");
  EXPECT_EQ(WriteIdx(folder_ / "i", folder_ / "l", folder_ / "db/", GetParam()), 2);
  const auto cursor = OpenCursor(GetParam(), folder_ / "db");
  EXPECT_EQ(cursor->Key(), "00000000");
  EXPECT_EQ(cursor->Value(), MakeDatum(1, 2, 1, "ab", 5).SerializeAsString());
  cursor->Next();
  EXPECT_EQ(cursor->Value(), MakeDatum(1, 2, 1, "cd", 3).SerializeAsString());
}

TEST_P(DatasetTest, LeavesNothingBehindWhenTheInputIsBad) {
  std::filesystem::create_directory(folder_ / "out");
  const auto big = [](int value) { return std::string("\0\0\0", 3) + static_cast<char>(value); };
  WriteBytes(folder_ / "i", std::string("\0\0\x08\x03", 4) + big(2) + big(2) + big(1) + "abc");
  WriteBytes(folder_ / "l", std::string("\0\0\x08\x01", 4) + big(2) + "\x05\x03");
  EXPECT_THAT(
      Catch([&] { WriteIdx(folder_ / "i", folder_ / "l", folder_ / "out/db", GetParam()); }),
      Refuses(ErrorCode::kData, "truncated"));
  EXPECT_THAT(NamesIn(folder_ / "out"), IsEmpty());
}

TEST_P(DatasetTest, LeavesNothingBehindWhenTheDiskIsFull) {
  const Thrown thrown = Catch([&] {
    const FileSizeLimit limit(200000);
    WriteDigits(Digits(2000, 10));
  });
  EXPECT_THAT(thrown, Refuses(ErrorCode::kIo, "cannot write"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "digits"));
}

TEST_P(DatasetTest, NeverOverwrites) {
  std::filesystem::create_directories(folder_ / "digits/test" + Suffix());
  EXPECT_THAT(Catch([&] { WriteDigits(Digits(5, 5)); }),
              Refuses(ErrorCode::kCannotCreate, "already exists and is not overwritten"));
  EXPECT_THAT(NamesIn(folder_ / "digits"), ElementsAre("test" + Suffix()));
}

TEST_P(DatasetTest, RefusesCountsThatKeysCannotOrder) {
  for (const int64_t count : {int64_t{0}, int64_t{-5}, int64_t{100000001}}) {
    DigitsOptions options = Digits(1, 1);
    options.test = count;
    EXPECT_THAT(Catch([&] { WriteDigits(options); }),
                Refuses(ErrorCode::kUsage, "number of test images is " + std::to_string(count)));
  }
}

}  // namespace
}  // namespace trainer

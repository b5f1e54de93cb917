#include "trainer/datasets/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "storage/test_data.h"

namespace trainer {
namespace {

constexpr int kImages = 60;

// Returns images of the two bytes i and 200 + i % 3, with label i % 3.
Records ThreeClasses() {
  Records records;
  for (int i = 0; i < kImages; ++i) {
    const std::string pixels = {static_cast<char>(i), static_cast<char>(200 + i % 3)};
    records.emplace_back(Key8(i), MakeDatum(1, 1, 2, pixels, i % 3).SerializeAsString());
  }
  return records;
}

std::vector<caffe::Datum> ReadAllPairs(const std::string& backend, const std::string& path) {
  std::vector<caffe::Datum> all;
  const auto cursor = OpenCursor(backend, path);
  do {
    EXPECT_EQ(cursor->Key(), Key8(static_cast<int>(all.size())));
    EXPECT_TRUE(all.emplace_back().ParseFromString(std::string(cursor->Value())));
  } while (!cursor->Next());
  return all;
}

class PairsTest : public testing::TestWithParam<const char*> {
 protected:
  Thrown Refusal(const Records& records) {
    std::filesystem::remove_all(folder_ / "bad");
    WriteDb(GetParam(), folder_ / "bad", records);
    return Catch([&] { WritePairs(folder_ / "bad", folder_ / "pairs", GetParam()); });
  }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Of, PairsTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(PairsTest, LabelsSayWhetherTheTwoImagesAreOfOneClass) {
  WriteDb(GetParam(), folder_ / "db", ThreeClasses());
  EXPECT_EQ(WritePairs(folder_ / "db", folder_ / "pairs", GetParam(), 1), kImages);
  const auto pairs = ReadAllPairs(GetParam(), folder_ / "pairs");
  ASSERT_EQ(pairs.size(), size_t{kImages});
  std::set<int> labels, first, second;
  for (const caffe::Datum& pair : pairs) {
    EXPECT_EQ(pair.channels(), 2);
    EXPECT_EQ(pair.height(), 1);
    EXPECT_EQ(pair.width(), 2);
    ASSERT_EQ(pair.data().size(), 4u);
    EXPECT_EQ(pair.label(), pair.data()[1] == pair.data()[3] ? 1 : 0);
    EXPECT_EQ(static_cast<unsigned char>(pair.data()[1]), 200 + pair.data()[0] % 3);
    EXPECT_EQ(static_cast<unsigned char>(pair.data()[3]), 200 + pair.data()[2] % 3);
    labels.insert(pair.label());
    first.insert(pair.data()[0]);
    second.insert(pair.data()[2]);
  }
  EXPECT_EQ(labels.size(), 2u);
  EXPECT_GT(first.size(), 25u);  // 60 draws from 60 give 38 different ones on average
  EXPECT_GT(second.size(), 25u);
  EXPECT_NE(first, second);
}

TEST_P(PairsTest, TheSeedAloneDecides) {
  WriteDb(GetParam(), folder_ / "db", ThreeClasses());
  std::vector<std::string> all;
  int name = 0;
  for (const uint64_t seed : {7, 7, 8}) {
    const std::string path = folder_ / std::to_string(name++);
    WritePairs(folder_ / "db", path, GetParam(), seed);
    all.emplace_back();
    for (const caffe::Datum& pair : ReadAllPairs(GetParam(), path)) all.back() += pair.data();
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_NE(all[0], all[2]);
}

TEST_P(PairsTest, RefusesWhatIsNoImageOfAClass) {
  Records records = ThreeClasses();
  records[4].second = MakeDatum(1, 2, 2, "abcd", 0).SerializeAsString();
  EXPECT_THAT(Refusal(records), Refuses(ErrorCode::kData, "record '00000004' is 1x2x2, but the "));
  caffe::Datum datum = MakeDatum(1, 1, 2, "ab", 0);
  datum.clear_label();
  records[4].second = datum.SerializeAsString();
  EXPECT_THAT(Refusal(records), Refuses(ErrorCode::kData, "record '00000004' has no label"));
  datum = MakeDatum(1, 1, 2, "", 0);
  datum.add_float_data(1);
  datum.add_float_data(2);
  records[4].second = datum.SerializeAsString();
  EXPECT_THAT(Refusal(records), Refuses(ErrorCode::kData, "record '00000004' has float values"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "pairs"));
}

TEST_P(PairsTest, NamesAMissingDatabase) {
  EXPECT_THAT(Catch([&] { WritePairs(folder_ / "none", folder_ / "pairs", GetParam()); }),
              Refuses(ErrorCode::kNoInput, "no such database"));
}

}  // namespace
}  // namespace trainer

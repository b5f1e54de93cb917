#include "trainer/dataset/reading_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_data.h"

namespace trainer {
namespace {

TEST(ReadingRateTest, MeasuresEveryOrderOfADatabaseOnTheSameRecords) {
  const TempFolder folder;
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    WriteDb(backend, folder / backend, NumberedRecords(100));
    const std::vector<ReadingRate> rates = MeasureReading(folder / backend, {60, 2});
    ASSERT_EQ(rates.size(), 6u);
    uint64_t bytes = 0;
    for (const auto& record : NumberedRecords(100)) bytes += record.second.size();
    for (const ReadingRate& rate : rates) {
      EXPECT_EQ(rate.records, 100) << rate.order;
      EXPECT_EQ(rate.bytes, bytes) << rate.order;
      EXPECT_GT(rate.RecordsPerSecond(), 0);
    }
    EXPECT_TRUE(rates[0].cold);
    EXPECT_LE(rates[0].cached, 1);
    EXPECT_FALSE(rates[1].cold);
    EXPECT_EQ(rates[5].threads, 2);
  }
}

TEST(FilesOfSetTest, AreThoseThatHoldRecords) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "lmdb", NumberedRecords(1));
  EXPECT_THAT(FilesOfSet(folder / "lmdb"), testing::ElementsAre(folder / "lmdb/data.mdb"));
  WriteDb("LEVELDB", folder / "ldb", NumberedRecords(1));
  for (const std::string& file : FilesOfSet(folder / "ldb")) {
    EXPECT_THAT(file, testing::Not(testing::HasSubstr("LOCK")));
  }
  WriteBytes(folder / "some.tar", "");
  EXPECT_THAT(FilesOfSet(folder / "some.tar"), testing::ElementsAre(folder / "some.tar"));
  EXPECT_THAT(FilesOfSet(folder / "some-*.tar"), testing::IsEmpty());
}

}  // namespace
}  // namespace trainer

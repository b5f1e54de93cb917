#include "trainer/datasets/read_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/tar_text.h"
#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

TEST(ReadingRateTest, MeasuresEveryOrderOfADatabaseOnTheSameRecords) {
  const TempFolder folder;
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    WriteDb(backend, folder / backend, NumberedRecords(100));
    const std::vector<ReadRate> rates = BenchmarkReads(folder / backend, {60, 2});
    ASSERT_EQ(rates.size(), 6u);
    uint64_t bytes = 0;
    for (const auto& record : NumberedRecords(100)) bytes += record.second.size();
    for (const ReadRate& rate : rates) {
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

TEST(ReadingRateTest, TarFilesOfAPatternAreReadColdToo) {
  const TempFolder folder;
  for (const char* name : {"a-0.tar", "a-1.tar"}) {
    std::string tar;
    for (int i = 0; i < 8; ++i) {
      tar += TarEntryText(Join(i, ".ppm"), "P6 5 4 255\n" + std::string(60, 'x'));
      tar += TarEntryText(Join(i, ".cls"), "1");
    }
    WriteBytes(folder / name, tar + TarEnd());
  }
  const std::vector<ReadRate> rates = BenchmarkReads(folder / "a-{0..1}.tar", {60, 1});
  ASSERT_EQ(rates.size(), 5u);
  for (const ReadRate& rate : rates) EXPECT_EQ(rate.records, 16) << rate.order;
  EXPECT_TRUE(rates[0].cold);
  EXPECT_GE(rates[0].cached, 0);  // the share in the page cache is known
}

TEST(ReadingRateTest, MeasuresFilesOfALongListBySomeOfThem) {
  const TempFolder folder;
  const std::string picture = "P6 5 4 255\n" + std::string(60, 'x');
  WriteBytes(folder / "a.ppm", picture);
  const std::vector<ReadRate> rates =
      BenchmarkFiles(std::vector<std::string>(5000, folder / "a.ppm"), {60, 1});
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_TRUE(rates[0].cold);
  EXPECT_EQ(rates[2].order, "decoded");
  for (const ReadRate& rate : rates) {
    EXPECT_EQ(rate.records, 2000) << rate.order;
    EXPECT_EQ(rate.bytes, 2000 * picture.size()) << rate.order;
  }
}

TEST(ReadingRateTest, MeasuresTheRowsThatALayerReads) {
  const TempFolder folder;
  Hdf5Appender file(folder / "rows.h5");
  file.Append("numbers", std::vector<int64_t>{12, 5}, std::vector<float>(60));
  file.Flush();
  WriteBytes(folder / "list.txt", folder / "rows.h5");
  const LayerSpec& layer = KeptLayer(
      "name: 'd' type: 'HDF5Data' top: 'numbers' hdf5_data_param { batch_size: 4 source: '" +
      (folder / "list.txt") + "' }");
  for (const ReadRate& rate : BenchmarkRows(layer, {60, 1})) {
    EXPECT_EQ(rate.records, 12);
    EXPECT_EQ(rate.bytes, 12u * 5 * sizeof(float));
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
  WriteBytes(folder / "some-1.tar", "");
  WriteBytes(folder / "some-2.tar", "");
  EXPECT_THAT(FilesOfSet(folder / "some-{1..2}.tar"),
              testing::ElementsAre(folder / "some-1.tar", folder / "some-2.tar"));
  EXPECT_THAT(FilesOfSet(folder / "some-*.tar"), testing::SizeIs(2));
  WriteBytes(folder / "shards.txt", "some-1.tar\nsome-2.tar\n");
  EXPECT_THAT(FilesOfSet(folder / "shards.txt"),
              testing::ElementsAre(folder / "some-1.tar", folder / "some-2.tar"));
  EXPECT_THAT(Catch([&] { FilesOfSet(folder / "none-*.tar"); }),
              Refuses(ErrorCode::kNoInput, "no file matches this pattern"));
}

}  // namespace
}  // namespace trainer

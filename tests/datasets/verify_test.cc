#include "trainer/datasets/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "storage/test_data.h"
#include "trainer/storage/checksums.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class CheckRecordsTest : public testing::TestWithParam<const char*> {
 protected:
  std::string Db(const Records& records) {
    WriteDb(GetParam(), folder_ / "db", records);
    return folder_ / "db";
  }
  static std::string Printed(const VerifyReport& report) {
    std::ostringstream out;
    Print(report, out);
    return out.str();
  }

  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Of, CheckRecordsTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(CheckRecordsTest, CountsShapesLabelsAndBadRecordsWithAnyNumberOfThreads) {
  Records records = NumberedRecords(5);
  records[4].second = MakeDatum(1, 1, 1, "x", 3).SerializeAsString();
  records.emplace_back("a", MakeDatum(2, 1, 1, "xy", -1).SerializeAsString());
  records.emplace_back("b", "\xff");
  records.emplace_back("c", "\xff");
  caffe::Datum floats = MakeDatum(1, 1, 1, "", 0);
  floats.add_float_data(1);
  floats.clear_label();
  records.emplace_back("d", floats.SerializeAsString());
  const std::string path = Db(records);
  uint64_t bytes = 0;
  for (const auto& record : records) bytes += record.second.size();
  for (const int threads : {1, 3}) {
    const VerifyReport report = VerifyRecords(path, {.threads = threads});
    EXPECT_EQ(report.kind, GetParam());
    EXPECT_EQ(report.records, 9);
    EXPECT_EQ(report.first_key, "00000000");
    EXPECT_EQ(report.last_key, "d");
    EXPECT_EQ(report.bytes, bytes);
    EXPECT_THAT(report.shapes, ElementsAre(Pair("1x1x1 bytes", 5), Pair("1x1x1 floats", 1),
                                           Pair("2x1x1 bytes", 1)));
    EXPECT_THAT(report.labels,
                ElementsAre(Pair(-1, 1), Pair(0, 1), Pair(1, 1), Pair(2, 1), Pair(3, 2)));
    EXPECT_EQ(report.unlabelled, 1);
    EXPECT_EQ(report.bad, 2);
    EXPECT_THAT(report.errors, ElementsAre(HasSubstr("record 'b' is not a Datum"),
                                           HasSubstr("record 'c' is not a Datum")));
    EXPECT_THAT(report.same_keys, ElementsAre("'c' is 'b' again"));
    const std::string text = Printed(report);
    EXPECT_THAT(text, HasSubstr("records: 9\n"));
    EXPECT_THAT(text, HasSubstr("shape: 1x1x1 bytes, 5\n"));
    EXPECT_THAT(text, HasSubstr("label: 3, 2\n"));
    EXPECT_THAT(text, HasSubstr("unusable: 2\n"));
  }
}

TEST_P(CheckRecordsTest, NamesSoManyBadRecordsAndCountsTheOthers) {
  Records records;
  for (int i = 0; i < 30; ++i) records.emplace_back(Key8(i), std::string(1 + i % 3, '\xff'));
  const VerifyReport report = VerifyRecords(Db(records), {.errors = 4});
  EXPECT_EQ(report.errors.size(), 4u);
  EXPECT_EQ(report.bad, 30);
  EXPECT_THAT(Printed(report), HasSubstr("  and 26 more\n"));
}

TEST_P(CheckRecordsTest, SaysTheSpreadOfManySizes) {
  Records records;
  for (int i = 1; i <= 30; ++i) {
    records.emplace_back(Key8(i),
                         MakeDatum(1, i, 2, std::string(2 * i, 'x'), i).SerializeAsString());
  }
  const std::string text = Printed(VerifyRecords(Db(records)));
  EXPECT_THAT(text, HasSubstr("shapes: 30\nheight: 1 to 30, half of them up to 15\nwidth: 2\n"));
}

// --- Checksums ---

TEST_P(CheckRecordsTest, AFlippedBitOfPixelsIsFoundByTheChecksumsAlone) {
  Records records = NumberedRecords(20);
  const std::string path = Db(records);
  EXPECT_THAT(VerifyRecords(path, {.write_crc = true}).checksums, HasSubstr("written to "));
  EXPECT_EQ(VerifyRecords(path).bad, 0);
  EXPECT_THAT(VerifyRecords(path).checksums, HasSubstr("compared with "));
  // Rewrites the database with one bit of one pixel changed.
  const std::string checksums = ReadBytes(ChecksumPath(path));
  std::filesystem::remove_all(path);
  records[7].second = MakeDatum(1, 1, 1, std::string(1, 7 ^ 16), 7).SerializeAsString();
  Db(records);
  EXPECT_EQ(VerifyRecords(path).bad, 0);  // the picture itself is still valid
  WriteBytes(ChecksumPath(path), checksums);
  const VerifyReport report = VerifyRecords(path, {.threads = 2});
  EXPECT_EQ(report.bad, 1);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("record '00000007' differs from its checksum")));
}

TEST_P(CheckRecordsTest, ChecksumsOfAnotherNumberOfRecordsAreAnError) {
  const std::string path = Db(NumberedRecords(20));
  WriteChecksums(ChecksumPath(path), std::vector<uint32_t>(19));
  const VerifyReport report = VerifyRecords(path);
  EXPECT_EQ(report.bad, 20);
  EXPECT_THAT(report.errors, testing::Contains(HasSubstr("has 20 records")));
}

TEST_P(CheckRecordsTest, NoChecksumsAreWrittenOfBadRecords) {
  const std::string path = Db({{"a", "\xff"}});
  const VerifyReport report = VerifyRecords(path, {.write_crc = true});
  EXPECT_THAT(report.checksums, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(ChecksumPath(path)));
}

TEST(ChecksumFileTest, RefusesEveryTruncationAndEveryFlippedByte) {
  const TempFolder folder;
  const std::string path = folder / "sums";
  WriteChecksums(path, {1, 2, 0xffffffffu});
  const std::string good = ReadBytes(path);
  EXPECT_EQ(ReadChecksums(path), (std::vector<uint32_t>{1, 2, 0xffffffffu}));
  for (size_t i = 0; i < good.size(); ++i) {
    WriteBytes(path, good.substr(0, i));
    EXPECT_THAT(Catch([&] { ReadChecksums(path); }), Refuses(ErrorCode::kData, "write it again"));
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    WriteBytes(path, bad);
    EXPECT_THAT(Catch([&] { ReadChecksums(path); }), Refuses(ErrorCode::kData, "write it again"));
  }
}

TEST(CheckRecordsSourceTest, RefusesWhatIsNoDatabase) {
  TempFolder folder;
  EXPECT_THAT(Catch([&] { VerifyRecords(folder / "none"); }),
              Refuses(ErrorCode::kNoInput, "no such database"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(Catch([&] { VerifyRecords(folder / "empty"); }),
              Refuses(ErrorCode::kNoInput, "has neither data.mdb"));
}

}  // namespace
}  // namespace trainer

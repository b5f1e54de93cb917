// Tests that records that differ from their checksums are bad records, in any reading order and
// from any start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "input/every_source.h"
#include "trainer/datasets/verify.h"
#include "trainer/input/bad_records.h"
#include "trainer/storage/checksums.h"

namespace trainer {
namespace {

constexpr int kRecordChecksRecords = 30, kBad = 17;

// Writes checksums for the sets of EverySource. Record 17's checksum is wrong.
class RecordChecksTest : public testing::Test {
 protected:
  RecordChecksTest() { SetMaxBadRecords(-1); }
  ~RecordChecksTest() override { SetMaxBadRecords(-1); }

  static std::vector<std::string> Kinds() {
    return {"LMDB", "LMDB in random order", "LEVELDB", "LEVELDB in random order",
            "TAR",  "TAR in random order"};
  }

  std::string SetOf(const std::string& kind) const {
    const std::string backend = kind.substr(0, kind.find(' '));
    return source_.folder() + (backend == "TAR" ? "tar-{0..1}.tar" : backend);
  }

  void WriteSums(const std::string& kind, bool with_bad) const {
    VerifyOptions options;
    options.write_crc = true;
    EXPECT_EQ(VerifyRecords(SetOf(kind), options).bad, 0);
    if (!with_bad) return;
    std::vector<uint32_t> sums = ReadChecksums(ChecksumPath(SetOf(kind)));
    ASSERT_EQ(sums.size(), static_cast<size_t>(kRecordChecksRecords));
    sums[kBad] ^= 1;
    WriteChecksums(ChecksumPath(SetOf(kind)), sums);
  }

  EverySource source_{kRecordChecksRecords};
};

TEST_F(RecordChecksTest, GoodRecordsPassInEveryOrderAndAfterAnyStop) {
  for (const std::string& kind : Kinds()) {
    WriteSums(kind, false);
    for (const int threads : {1, 3}) {
      const auto first = source_.Make(kind, 7, {}, threads);
      for (int i = 0; i < 11; ++i) first->Next();
      const auto later = source_.Make(kind, 7, {1, 2}, threads);
      later->Restore(first->position());
      for (int i = 0; i < 11; ++i) later->Next();
    }
  }
}

TEST_F(RecordChecksTest, ARecordThatDiffersEndsTheRunWithItsName) {
  for (const std::string& kind : Kinds()) {
    WriteSums(kind, true);
    const auto source = source_.Make(kind, 10);
    const Thrown thrown = Catch([&] {
      for (int i = 0; i < 3; ++i) source->Next();
    });
    const std::string name = kind.starts_with("TAR") ? "'tar-1.tar/p17'" : "'00000017'";
    EXPECT_THAT(thrown,
                Refuses(ErrorCode::kData, "record " + name + " differs from its checksum in "))
        << kind;
  }
}

TEST_F(RecordChecksTest, ARecordThatDiffersIsSkippedLikeAnyBadOne) {
  SetMaxBadRecords(5);
  for (const std::string& kind : Kinds()) {
    WriteSums(kind, true);
    const auto alone = source_.Make(kind, 10), together = source_.Make(kind, 10, {}, 4);
    const std::vector<int> records = EverySource::Records(*alone, 9);  // three epochs
    EXPECT_EQ(EverySource::Records(*together, 9), records) << kind;
    EXPECT_EQ(std::ranges::count(records, kBad), 0) << kind;
    const auto later = source_.Make(kind, 10);
    const auto before = source_.Make(kind, 10);
    EverySource::Records(*before, 1);
    later->Restore(before->position());
    EXPECT_EQ(EverySource::Records(*later, 8),
              std::vector<int>(records.begin() + 10, records.end()))
        << kind;
  }
}

TEST_F(RecordChecksTest, AnotherNumberOfRecordsIsRefusedAtOnce) {
  WriteChecksums(ChecksumPath(SetOf("LMDB")), std::vector<uint32_t>(kRecordChecksRecords - 1));
  EXPECT_THAT(Catch([&] { source_.Make("LMDB", 10); }),
              Refuses(ErrorCode::kData, "30 records, but"));
  WriteBytes(ChecksumPath(SetOf("LMDB")), "damaged");
  EXPECT_THAT(Catch([&] { source_.Make("LMDB", 10); }),
              Refuses(ErrorCode::kData, "this is not a checksum file, or it is damaged"));
}

}  // namespace
}  // namespace trainer

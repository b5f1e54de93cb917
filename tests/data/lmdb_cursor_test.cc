// LMDB's own faults, injected into real files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "data/test_data.h"
#include "trainer/data/cursor.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LmdbCursorTest : public testing::Test {
 protected:
  LmdbCursorTest() {
    // Several leaf pages, and values with pages of their own.
    for (int i = 0; i < 40; ++i) {
      records_.emplace_back(Key8(i), std::string(i % 10 == 0 ? 9000 : 300, static_cast<char>(i)));
    }
    WriteDb("LMDB", path_, records_);
    bytes_ = ReadBytes(path_ + "/data.mdb");
  }

  // The same database with another data.mdb.
  void Replace(const std::string& bytes) {
    std::filesystem::remove(path_ + "/lock.mdb");
    WriteBytes(path_ + "/data.mdb", bytes);
  }
  int CountRecords() {
    const auto cursor = OpenCursor("LMDB", path_);
    int count = 1;
    while (!cursor->Next()) ++count;
    return count;
  }
  Thrown Refusal() {
    return Catch([&] { CountRecords(); });
  }

  TempFolder folder_;
  std::string path_ = folder_ / "db";
  Records records_;
  std::string bytes_;
};

TEST_F(LmdbCursorTest, RefusesEveryTruncationWithoutTouchingMissingPages) {
  ASSERT_EQ(bytes_.size() % 4096, 0u);
  std::set<size_t> lengths{1, 15, 16, 17, 43, 44, 100, 4095, 4097, 8191};
  for (size_t length = 4096; length < bytes_.size(); length += 4096) {
    lengths.insert({length - 1, length, length + 1, length + 2048});
  }
  for (const size_t length : lengths) {
    Replace(bytes_.substr(0, length));
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb is truncated: ")) << length;
  }
  Replace(bytes_);
  EXPECT_EQ(CountRecords(), 40);
}

TEST_F(LmdbCursorTest, NamesBothSizesOfATruncatedFile) {
  Replace(bytes_.substr(0, 12288));
  EXPECT_THAT(Refusal().text,
              HasSubstr("12288 bytes where " + std::to_string(bytes_.size() / 4096) +
                        " pages of 4096 bytes belong"));
}

TEST_F(LmdbCursorTest, RefusesZeroBytes) {
  Replace("");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb has 0 bytes"));
}

TEST_F(LmdbCursorTest, RefusesAFileThatIsNotLmdb) {
  Replace(std::string(20000, 'x'));
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "not an LMDB file"));
}

TEST_F(LmdbCursorTest, RefusesAFolderInPlaceOfTheFile) {
  std::filesystem::remove(path_ + "/data.mdb");
  std::filesystem::create_directory(path_ + "/data.mdb");
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "data.mdb is not a file"));
}

TEST_F(LmdbCursorTest, ExplainsAnotherFormatVersion) {
  std::string newer = bytes_;
  newer[20] = newer[4096 + 20] = 2;
  Replace(newer);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "mdb_dump of that version, then mdb_load"));
}

TEST_F(LmdbCursorTest, RefusesAnImpossiblePageSize) {
  for (const int page_bytes : {0, 1, 4097, 1 << 20}) {
    std::string bad = bytes_;
    for (int i = 0; i < 4; ++i) bad[40 + i] = static_cast<char>(page_bytes >> (8 * i));
    Replace(bad);
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "its header says pages of " +
                                                         std::to_string(page_bytes) + " bytes"));
  }
}

TEST_F(LmdbCursorTest, SurvivesAnyDamagedByteOfTheHeaders) {
  // LMDB has no checksums: some damage goes unnoticed. None may end the process.
  int refused = 0;
  for (size_t page = 0; page < 2; ++page) {
    for (size_t i = 0; i < 152; ++i) {
      std::string bad = bytes_;
      bad[page * 4096 + i] = static_cast<char>(~bad[page * 4096 + i]);
      Replace(bad);
      const Thrown thrown = Refusal();
      if (thrown.code != 0) ++refused;
    }
  }
  EXPECT_GT(refused, 20);
}

TEST_F(LmdbCursorTest, ReadsAReadOnlyFolderWithoutALockAndWarnsOnce) {
  std::filesystem::remove(path_ + "/lock.mdb");
  ASSERT_EQ(chmod(path_.c_str(), 0555), 0);
  const LogLines log;
  {
    const AsNobody nobody;
    EXPECT_EQ(CountRecords(), 40);
  }
  EXPECT_THAT(log.Get(), ElementsAre(HasSubstr("reading without one")));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/lock.mdb"));
  chmod(path_.c_str(), 0755);
}

TEST_F(LmdbCursorTest, ReadsAWritableFolderWithoutAWarning) {
  const LogLines log;
  EXPECT_EQ(CountRecords(), 40);
  EXPECT_THAT(log.Get(), IsEmpty());
}

TEST_F(LmdbCursorTest, RefusesAFileThatMayNotBeRead) {
  ASSERT_EQ(chmod((path_ + "/data.mdb").c_str(), 0), 0);
  const AsNobody nobody;
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kNoPermission, "cannot open data.mdb"));
}

TEST_F(LmdbCursorTest, OpensOneDatabaseTwice) {
  const auto first = OpenCursor("LMDB", path_);
  const auto second = OpenCursor("LMDB", path_);
  EXPECT_FALSE(second->Next());
  EXPECT_EQ(first->Key(), Key8(0));
  EXPECT_EQ(second->Key(), Key8(1));
}

}  // namespace
}  // namespace trainer

#include "trainer/storage/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "storage/test_data.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Both backends must pass these tests.
class CursorTest : public testing::TestWithParam<const char*> {
 protected:
  std::string Write(const Records& records) {
    const std::string path = folder_ / ("db" + std::to_string(made_++));
    WriteDb(GetParam(), path, records);
    return path;
  }
  Records ReadOnce(Cursor& cursor) {
    Records all;
    do {
      all.emplace_back(cursor.Key(), cursor.Value());
    } while (!cursor.Next());
    return all;
  }

  TempFolder folder_;
  int made_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Of, CursorTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(CursorTest, ReadsRecordsInByteOrderOfTheirKeys) {
  const auto cursor =
      OpenCursor(GetParam(), Write({{"b", "2"}, {"a", "1"}, {"\xff", "4"}, {"bb", "3"}}));
  EXPECT_THAT(ReadOnce(*cursor),
              ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("bb", "3"), Pair("\xff", "4")));
}

TEST_P(CursorTest, WrapsToTheFirstRecordAndSaysSo) {
  const auto cursor = OpenCursor(GetParam(), Write({{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(cursor->Next());
  EXPECT_TRUE(cursor->Next());
  EXPECT_EQ(cursor->Key(), "a");
  EXPECT_FALSE(cursor->Next());
  EXPECT_EQ(cursor->Key(), "b");
}

TEST_P(CursorTest, WrapsADatabaseOfOneRecordAtEachStep) {
  const auto cursor = OpenCursor(GetParam(), Write({{"only", "1"}}));
  EXPECT_TRUE(cursor->Next());
  EXPECT_TRUE(cursor->Next());
  EXPECT_EQ(cursor->Value(), "1");
}

TEST_P(CursorTest, SeeksTheFirstKeyThatIsNotLess) {
  const auto cursor = OpenCursor(GetParam(), Write({{"a", "1"}, {"c", "3"}, {"e", "5"}}));
  EXPECT_TRUE(cursor->SeekAtLeast("b"));
  EXPECT_EQ(cursor->Key(), "c");
  EXPECT_TRUE(cursor->SeekAtLeast("a"));
  EXPECT_EQ(cursor->Value(), "1");
  EXPECT_FALSE(cursor->SeekAtLeast("ea"));
  EXPECT_EQ(cursor->Key(), "a") << "stays";
  cursor->SeekLast();
  EXPECT_EQ(cursor->Key(), "e");
  EXPECT_TRUE(cursor->Next()) << "back to the first";
  EXPECT_EQ(cursor->Count(), GetParam() == std::string("LMDB") ? 3 : -1);
}

TEST_P(CursorTest, SeeksExactKeysAndStaysWhereItIsWithoutOne) {
  const auto cursor = OpenCursor(GetParam(), Write({{"a", "1"}, {"c", "3"}, {"e", "5"}}));
  EXPECT_TRUE(cursor->Seek("c"));
  EXPECT_EQ(cursor->Value(), "3");
  EXPECT_FALSE(cursor->Seek("d"));
  EXPECT_EQ(cursor->Key(), "c");
  EXPECT_FALSE(cursor->Seek(""));
  EXPECT_FALSE(cursor->Seek("f"));
  EXPECT_FALSE(cursor->Seek(std::string(10000, 'a')));
  EXPECT_EQ(cursor->Key(), "c");
  EXPECT_FALSE(cursor->Next());
  EXPECT_EQ(cursor->Key(), "e");
  cursor->SeekFirst();
  EXPECT_EQ(cursor->Key(), "a");
}

TEST_P(CursorTest, ReadsLargeAndEmptyValues) {
  const std::string large(3 << 20, 'x');
  const auto cursor = OpenCursor(GetParam(), Write({{"a", ""}, {"b", large}, {"c", "z"}}));
  EXPECT_THAT(ReadOnce(*cursor), ElementsAre(Pair("a", ""), Pair("b", large), Pair("c", "z")));
}

TEST_P(CursorTest, RefusesAnEmptyDatabase) {
  const std::string path = Write({});
  EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), path); }),
              Refuses(ErrorCode::kData, path + ": the database is empty"));
}

TEST_P(CursorTest, RefusesAMissingFolderNamingWhereItLooked) {
  EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), "no/such/db"); }),
              Refuses(ErrorCode::kNoInput, "no such database"));
  EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), "no/such/db"); }).text,
              HasSubstr(std::filesystem::current_path().string() + "/no/such/db"));
}

TEST_P(CursorTest, RefusesAFile) {
  WriteBytes(folder_ / "file", "x");
  EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), folder_ / "file"); }),
              Refuses(ErrorCode::kData, "a database is a folder"));
}

TEST_P(CursorTest, RefusesAFolderWithoutADatabase) {
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), folder_ / "empty"); }),
              Refuses(ErrorCode::kNoInput, "it is not an"));
}

TEST_P(CursorTest, NamesTheOtherBackendWhenItsDatabaseIsGiven) {
  const std::string other = std::string(GetParam()) == "LMDB" ? "LEVELDB" : "LMDB";
  const std::string path = Write({{"a", "1"}});
  EXPECT_EQ(DetectFormat(path), GetParam());
  EXPECT_THAT(Catch([&] { OpenCursor(other, path); }),
              Refuses(ErrorCode::kNoInput, "write backend: " + std::string(GetParam())));
}

TEST_P(CursorTest, RefusesAFolderThatMayNotBeEntered) {
  const std::string path = Write({{"a", "1"}});
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  {
    const AsNobody nobody;
    EXPECT_THAT(Catch([&] { OpenCursor(GetParam(), path); }),
                Refuses(ErrorCode::kNoPermission, "no permission to enter"));
  }
  chmod(path.c_str(), 0755);
}

TEST(OpenCursorTest, RefusesAnUnknownBackendListingTheKnownOnes) {
  EXPECT_THAT(
      Catch([&] { OpenCursor("ROCKSDB", "/tmp"); }),
      Refuses(ErrorCode::kUsage, "unknown database backend 'ROCKSDB'; known: LEVELDB, LMDB"));
}

TEST(QuoteKeyTest, EscapesControlBytesAndCutsLongKeys) {
  EXPECT_EQ(QuoteKey("00000001_a b.jpg"), "'00000001_a b.jpg'");
  EXPECT_EQ(QuoteKey("a\x1b[2J"), "'a\\x1b[2J'");
  EXPECT_EQ(QuoteKey(std::string(81, 'k')), "'" + std::string(80, 'k') + "...'");
}

}  // namespace
}  // namespace trainer

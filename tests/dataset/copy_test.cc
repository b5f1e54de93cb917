#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_data.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

using testing::HasSubstr;

Records ReadAll(const std::string& path) {
  Records records;
  const auto cursor = OpenCursor(BackendOf(path), path);
  do {
    records.emplace_back(cursor->Key(), cursor->Value());
  } while (!cursor->Next());
  return records;
}

TEST(CopyDatabaseTest, KeepsKeysAndBytesInAnyKindOfDatabase) {
  const TempFolder folder;
  const Records records{
      {"a", "one"}, {"b2", std::string("\0two", 4)}, {"c", std::string(9000, 'x')}};
  for (const std::string from : {"LMDB", "LEVELDB"}) {
    WriteDb(from, folder / from, records);
    for (const std::string to : {"LMDB", "LEVELDB"}) {
      const std::string copy = folder / (from + "_" + to);
      EXPECT_EQ(CopyDatabase(folder / from, copy, to), 3);
      EXPECT_EQ(BackendOf(copy), to);
      EXPECT_EQ(ReadAll(copy), records);
    }
  }
}

TEST(CopyDatabaseTest, ReplacesNothing) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "db", NumberedRecords(2));
  const Thrown thrown = Catch([&] { CopyDatabase(folder / "db", folder / "db"); });
  EXPECT_EQ(thrown.code, 73);
  EXPECT_THAT(thrown.text, HasSubstr("exists already"));
  EXPECT_EQ(ReadAll(folder / "db").size(), 2u);
}

}  // namespace
}  // namespace trainer

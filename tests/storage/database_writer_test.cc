#include "trainer/storage/database_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "storage/test_data.h"
#include "support/file_size_limit.h"
#include "support/scoped.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

class DbWriterTest : public testing::TestWithParam<const char*> {
 protected:
  TempFolder folder_;
  std::string path_ = folder_ / "db";
};
INSTANTIATE_TEST_SUITE_P(Of, DbWriterTest, testing::Values("LMDB", "LEVELDB"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(DbWriterTest, GrowsWithItsRecords) {
  // LMDB's map starts at 1 MiB, so 24 MB must double it several times, across several transactions.
  const std::string value(300000, 'v');
  {
    const auto writer = CreateDb(GetParam(), path_);
    for (int i = 0; i < 80; ++i) writer->Put(Key8(i), value + Key8(i));
    writer->Commit();
  }
  const auto cursor = OpenCursor(GetParam(), path_);
  for (int i = 0; i < 80; ++i) {
    ASSERT_EQ(cursor->Key(), Key8(i));
    ASSERT_EQ(cursor->Value(), value + Key8(i));
    ASSERT_EQ(cursor->Next(), i == 79);
  }
}

TEST_P(DbWriterTest, KeepsTheLastValueOfAKey) {
  WriteDb(GetParam(), path_, {{"a", "1"}, {"b", "2"}, {"a", "3"}});
  const auto cursor = OpenCursor(GetParam(), path_);
  EXPECT_EQ(cursor->Value(), "3");
  EXPECT_FALSE(cursor->Next());
  EXPECT_TRUE(cursor->Next());
}

TEST_P(DbWriterTest, RefusesAnExistingFolder) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(Catch([&] { CreateDb(GetParam(), path_); }),
              Refuses(ErrorCode::kCannotCreate, "already exists and is not overwritten"));
}

TEST_P(DbWriterTest, RefusesAFolderThatCannotBeMade) {
  EXPECT_THAT(Catch([&] { CreateDb(GetParam(), folder_ / "no/such/db"); }),
              Refuses(ErrorCode::kCannotCreate, "cannot create the folder: No such file"));
}

TEST_P(DbWriterTest, HonoursTheUmask) {
  const ScopedUmask umask(027);
  CreateDb(GetParam(), path_);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
}

TEST_P(DbWriterTest, ReportsAFullDisk) {
  const auto writer = CreateDb(GetParam(), path_);
  const std::string value(50000, 'v');
  const Thrown thrown = Catch([&] {
    const FileSizeLimit limit(200000);
    for (int i = 0; i < 20; ++i) writer->Put(Key8(i), value);
    writer->Commit();
  });
  EXPECT_THAT(thrown, Refuses(ErrorCode::kIo, "cannot write"));
}

TEST(CreateDbTest, RefusesAnUnknownBackend) {
  EXPECT_THAT(Catch([] { CreateDb("HDF5", "/tmp/x"); }),
              Refuses(ErrorCode::kUsage, "unknown database backend 'HDF5'; known: LEVELDB, LMDB"));
}

TEST(LmdbWriterTest, RefusesKeysThatLmdbCannotHold) {
  TempFolder folder;
  const auto writer = CreateDb("LMDB", folder / "db");
  EXPECT_THAT(Catch([&] { writer->Put("", "v"); }),
              Refuses(ErrorCode::kData, "LMDB allows 1 to 511"));
  EXPECT_THAT(Catch([&] { writer->Put(std::string(512, 'k'), "v"); }),
              Refuses(ErrorCode::kData, "has 512 bytes"));
  writer->Put(std::string(511, 'k'), "v");
  writer->Commit();
}

}  // namespace
}  // namespace trainer

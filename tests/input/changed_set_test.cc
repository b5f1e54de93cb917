// Tests that a data set that changes while it is read ends the run at the end of the epoch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>

#include "input/every_source.h"

namespace trainer {
namespace {

constexpr int kChangedSetRecords = 20, kBatch = 5;

class ChangedSetTest : public testing::TestWithParam<const char*> {
 protected:
  // Reads an epoch and a half. Returns the number of batches before an error, and the error.
  std::pair<int, Thrown> Read(BatchQueue& source) {
    int good = 0;
    const Thrown thrown = Catch([&] {
      for (; good < 6; ++good) source.Next();
    });
    return {good, thrown};
  }

  EverySource source_{kChangedSetRecords};
};
INSTANTIATE_TEST_SUITE_P(Of, ChangedSetTest,
                         testing::Values("LMDB", "LMDB in random order", "TAR",
                                         "TAR in random order"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, ' ');
                           return name;
                         });

TEST_P(ChangedSetTest, AFileThatWasReplacedIsNamedAfterTheEpoch) {
  const auto source = source_.Make(GetParam(), kBatch);
  const std::string file =
      source_.folder() + (GetParam()[0] == 'T' ? "tar-1.tar" : "LMDB/data.mdb");
  std::filesystem::copy(file, file + ".new");
  std::filesystem::rename(file + ".new", file);
  const auto [good, thrown] = Read(*source);
  EXPECT_THAT(thrown, Refuses(ErrorCode::kData, "was changed during the run"));
  EXPECT_THAT(thrown.text, testing::HasSubstr(file));
  EXPECT_EQ(good, kChangedSetRecords / kBatch);
}

TEST_P(ChangedSetTest, AFileThatStaysAsItWasIsReadOn) {
  const auto source = source_.Make(GetParam(), kBatch);
  const auto [good, thrown] = Read(*source);
  EXPECT_EQ(good, 6);
  EXPECT_EQ(thrown.code, 0) << thrown.text;
}

TEST(ChangedLmdbTest, ARecordThatAnotherProgramAddsIsNoticed) {
  EverySource all(kChangedSetRecords);
  const auto source = all.Make("LMDB", kBatch);
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  ASSERT_EQ(mdb_env_create(&env), 0);
  ASSERT_EQ(mdb_env_open(env, (all.folder() + "LMDB").c_str(), 0, 0664), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, nullptr, 0, &dbi), 0);
  std::string name = "99999999", bytes(100, 'x');
  MDB_val key{name.size(), name.data()}, value{bytes.size(), bytes.data()};
  ASSERT_EQ(mdb_put(txn, dbi, &key, &value, 0), 0);
  ASSERT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
  EXPECT_THAT(Catch([&] {
                for (int i = 0; i < 6; ++i) source->Next();
              }),
              Refuses(ErrorCode::kData, "was changed during the run"));
}

}  // namespace
}  // namespace trainer

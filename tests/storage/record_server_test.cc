// A LevelDB that one process reads for several: what they see, and how each end fails.

#include "trainer/storage/record_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "input/every_source.h"
#include "record_protocol.h"
#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/remote_cursor.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

class RecordHostTest : public testing::Test {
 protected:
  static constexpr int kRecords = 50;

  RecordHostTest() {
    for (int i = 0; i < kRecords; ++i) records_.emplace_back(Key8(i), ValueOf(i));
    WriteDb("LEVELDB", path_, records_);
    host_ = std::make_unique<RecordServer>(name_);
    ReadFromServer(name_, milliseconds(60'000));
  }
  ~RecordHostTest() override { ReadFromServer("", milliseconds(0)); }

  // Records of different lengths, the largest above what is sent at once.
  static std::string ValueOf(int i) {
    const size_t length = i % 10 == 7 ? 700'000 : static_cast<size_t>(i * i);
    return std::string(length, static_cast<char>('a' + i % 26));
  }
  std::unique_ptr<Cursor> Open() const { return OpenCursor("LEVELDB", path_); }

  const TempFolder folder_;
  const std::string path_ = folder_ / "db";
  const std::string name_ = Join("trainer-test-", getpid());
  Records records_;
  std::unique_ptr<RecordServer> host_;
};

TEST_F(RecordHostTest, GivesAllRecordsEpochAfterEpoch) {
  const auto cursor = Open();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < kRecords; ++i) {
      EXPECT_EQ(cursor->Key(), Key8(i));
      EXPECT_EQ(cursor->Value(), ValueOf(i));
      EXPECT_EQ(cursor->Next(), i + 1 == kRecords);
    }
  }
}

TEST_F(RecordHostTest, GivesEachReaderItsOwnPosition) {
  const auto first = Open(), second = Open(), third = Open();
  for (int i = 0; i < 10; ++i) first->Next();
  second->Next();
  EXPECT_EQ(first->Key(), Key8(10));
  EXPECT_EQ(second->Key(), Key8(1));
  EXPECT_EQ(third->Value(), ValueOf(0));
}

TEST_F(RecordHostTest, GivesTheValuesThatAreLookedAtWhicheverTheyAre) {
  for (const uint64_t every : {1u, 2u, 3u, 7u}) {
    const auto cursor = Open();
    cursor->SetStride(every);
    const std::string start = Key8(3);
    ASSERT_TRUE(cursor->Seek(start));
    uint64_t at = 3;
    for (const uint64_t step : {every, every, every, uint64_t{1}, every, uint64_t{5}, every, every,
                                uint64_t{60}, every, every}) {
      for (uint64_t k = 0; k < step; ++k, ++at) cursor->Next();
      const int record = static_cast<int>(at % kRecords);
      const std::string_view key = cursor->Key();
      EXPECT_EQ(cursor->Value(), ValueOf(record)) << every << " " << at;
      EXPECT_EQ(key, Key8(record));
    }
  }
}

TEST_F(RecordHostTest, SeeksAsTheDatabaseDoes) {
  const auto cursor = Open();
  cursor->SeekLast();
  EXPECT_EQ(cursor->Key(), Key8(kRecords - 1));
  cursor->SeekFirst();
  for (int i = 0; i < 5; ++i) cursor->Next();
  EXPECT_FALSE(cursor->Seek("nothing"));
  EXPECT_FALSE(cursor->SeekAtLeast("nothing"));
  EXPECT_EQ(cursor->Key(), Key8(5));
  EXPECT_EQ(cursor->Value(), ValueOf(5));
  EXPECT_FALSE(cursor->Next());
  EXPECT_EQ(cursor->Key(), Key8(6));
  EXPECT_TRUE(cursor->SeekAtLeast(Key8(8) + "x"));
  EXPECT_EQ(cursor->Key(), Key8(9));
  EXPECT_TRUE(cursor->Seek(Key8(2)));
  EXPECT_EQ(cursor->Value(), ValueOf(2));
}

TEST_F(RecordHostTest, GivesAReplicaTheBatchesThatItReadsByItself) {
  const EverySource source(23);
  for (const int ranks : {1, 2, 3, 5}) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const int threads : {1, 3}) {
        ReadFromServer("", milliseconds(0));
        const auto own = source.Make("LEVELDB", 2, {rank, ranks});
        own->Next();
        ReadFromServer(name_, milliseconds(60'000));
        const auto hosted = source.Make("LEVELDB", 2, {rank, ranks}, threads);
        hosted->Restore(own->position());
        EXPECT_EQ(EverySource::Records(*hosted, 30), EverySource::Records(*own, 30));
        EXPECT_EQ(hosted->position(), own->position());
        EXPECT_EQ(hosted->RecordName(1), own->RecordName(1));
      }
    }
  }
}

TEST_F(RecordHostTest, HandsOnWhyADatabaseCannotBeOpened) {
  WriteBytes(path_ + "/CURRENT", "MANIFEST-000099\n");
  const Thrown hosted = Catch([&] { Open(); });
  ReadFromServer("", milliseconds(0));
  const Thrown own = Catch([&] { Open(); });
  EXPECT_EQ(hosted.code, own.code);
  EXPECT_EQ(hosted.text, own.text);
  EXPECT_EQ(own.code, 65);
}

TEST_F(RecordHostTest, HandsOnADamagedRecordWhereItIs) {
  { const auto cursor = Open(); }  // its log becomes a table
  host_.reset();
  host_ = std::make_unique<RecordServer>(name_);
  std::string table;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().extension() == ".ldb") table = entry.path().string();
  }
  ASSERT_NE(table, "");
  std::string bytes = ReadBytes(table);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  WriteBytes(table, bytes);
  const auto read_all = [&] {
    const auto cursor = Open();
    while (!cursor->Next()) {
    }
  };
  const Thrown hosted = Catch(read_all);
  ReadFromServer("", milliseconds(0));
  const Thrown own = Catch(read_all);
  EXPECT_EQ(hosted.code, 65) << hosted.text;
  EXPECT_EQ(hosted.text, own.text);
}

TEST_F(RecordHostTest, ClosesTheDatabaseWithItsLastReader) {
  auto cursor = Open();
  for (int i = 0; i < 3; ++i) cursor->Next();
  cursor.reset();  // in the middle of a stream
  ReadFromServer("", milliseconds(0));
  EXPECT_EQ(Open()->Key(), Key8(0));
}

TEST_F(RecordHostTest, ThatEndsEndsItsReadersWith82) {
  const auto cursor = Open();
  cursor->Next();
  host_.reset();
  const Thrown thrown = Catch([&] {
    for (int i = 0; i < 1000; ++i) cursor->Next();
  });
  EXPECT_EQ(thrown.code, 82);
  EXPECT_THAT(thrown.text, StartsWith(path_));
  EXPECT_THAT(thrown.text, HasSubstr("has ended. Resume from the newest snapshot"));
  EXPECT_EQ(Catch([&] { Open(); }).code, 82);
}

TEST_F(RecordHostTest, ThatIsSilentEndsItsReadersAfterTheirPatience) {
  const std::string name = name_ + "-silent";
  const int listening = ListenAsServer(name);  // and nobody accepts
  ReadFromServer(name, milliseconds(1200));
  const Thrown thrown = Catch([&] { Open(); });
  EXPECT_EQ(thrown.code, 82);
  EXPECT_THAT(thrown.text, HasSubstr("has been silent for 1 s (--peer_timeout)"));
  close(listening);
}

TEST_F(RecordHostTest, IsNotDisturbedByAReaderThatIsKilled) {
  const pid_t child = fork();
  if (child == 0) {
    const auto cursor = Open();
    cursor->Next();
    _exit(0);  // in the middle of a stream
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto cursor = Open();
  int count = 1;
  while (!cursor->Next()) ++count;
  EXPECT_EQ(count, kRecords);
}

TEST_F(RecordHostTest, RefusesAReaderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(1);
    _exit(ConnectToServer(name_) < 0 && errno == EPERM ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RecordHostTest, HasANameOfItsOwn) {
  const Thrown thrown = Catch([&] { const RecordServer second(name_); });
  EXPECT_EQ(thrown.code, 74);
  EXPECT_THAT(thrown.text, HasSubstr("Address already in use"));
}

TEST_F(RecordHostTest, LeavesDatabasesOfManyReadersAlone) {
  WriteDb("LMDB", folder_ / "lmdb", NumberedRecords(3));
  host_.reset();
  EXPECT_EQ(OpenCursor("LMDB", folder_ / "lmdb")->Count(), 3);
}

}  // namespace
}  // namespace trainer

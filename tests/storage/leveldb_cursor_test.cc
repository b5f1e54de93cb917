// Tests LevelDB's errors, injected into real files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <set>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class LevelDbCursorTest : public testing::Test {
 protected:
  LevelDbCursorTest() {
    uint32_t noise = 1;  // prevents compression
    for (int i = 0; i < 300; ++i) {
      std::string value(2000, ' ');
      for (char& c : value) c = static_cast<char>((noise = noise * 1664525 + 1013904223) >> 24);
      records_.emplace_back(Key8(i), value);
    }
    WriteDb("LEVELDB", path_, records_);
    MoveLogIntoTable();
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".ldb") table_ = entry.path().string();
    }
    bytes_ = ReadBytes(table_);
  }

  // LevelDB keeps a writer's records in its log until the next opening.
  void MoveLogIntoTable() {
    OpenCursor("LEVELDB", path_);
    leveldb::DB* raw = nullptr;
    ASSERT_TRUE(leveldb::DB::Open({}, path_, &raw).ok());
    const std::unique_ptr<leveldb::DB> db(raw);
    db->CompactRange(nullptr, nullptr);
  }
  int CountRecords() {
    const auto cursor = OpenCursor("LEVELDB", path_);
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
  std::string table_, bytes_;
};

TEST_F(LevelDbCursorTest, FindsEachDamagedByteOfATable) {
  ASSERT_GT(bytes_.size(), 600000u);
  EXPECT_EQ(CountRecords(), 300);
  for (size_t at = 0; at < bytes_.size(); at += 9973) {
    std::string bad = bytes_;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    WriteBytes(table_, bad);
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "the database is damaged")) << at;
  }
}

TEST_F(LevelDbCursorTest, NamesTheLastGoodRecordBeforeTheDamage) {
  std::string bad = bytes_;
  bad[bad.size() / 2] = static_cast<char>(~bad[bad.size() / 2]);
  WriteBytes(table_, bad);
  const auto cursor = OpenCursor("LEVELDB", path_);
  std::string last;
  const Thrown thrown = Catch([&] {
    do {
      last = cursor->Key();
    } while (!cursor->Next());
  });
  EXPECT_THAT(thrown, Refuses(ErrorCode::kData, "damaged after record '" + last + "'"));
  EXPECT_THAT(thrown.text, HasSubstr("checksum mismatch"));
}

TEST_F(LevelDbCursorTest, RefusesACutTable) {
  for (const size_t length : {bytes_.size() / 2, bytes_.size() - 1, size_t{10}, size_t{0}}) {
    WriteBytes(table_, bytes_.substr(0, length));
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "damaged")) << length;
  }
}

TEST_F(LevelDbCursorTest, RefusesAMissingTable) {
  std::filesystem::remove(table_);
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "missing files"));
}

TEST_F(LevelDbCursorTest, RefusesADamagedManifest) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().rfind("MANIFEST", 0) == 0) {
      WriteBytes(entry.path(), "nonsense");
    }
  }
  EXPECT_THAT(Refusal(), Refuses(ErrorCode::kData, "damaged or incomplete"));
}

TEST_F(LevelDbCursorTest, OpensOneDatabaseTwiceInAProcess) {
  auto first = OpenCursor("LEVELDB", path_);
  std::filesystem::create_directory_symlink(path_, folder_ / "link");
  const auto second = OpenCursor("LEVELDB", folder_ / "link");
  EXPECT_FALSE(second->Next());
  EXPECT_EQ(first->Key(), Key8(0));
  EXPECT_EQ(second->Key(), Key8(1));
  first.reset();
  EXPECT_FALSE(second->Next());
  EXPECT_EQ(second->Key(), Key8(2));
}

TEST_F(LevelDbCursorTest, OpensAgainAfterTheLastReaderWentOrCouldNotOpen) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CountRecords(), 300);
  std::filesystem::rename(table_, table_ + ".away");
  EXPECT_EQ(Refusal().code, static_cast<int>(ErrorCode::kData));
  std::filesystem::rename(table_ + ".away", table_);
  EXPECT_EQ(CountRecords(), 300);
}

// Starts a process that runs `hold` and then waits until this object is destroyed.
class Holder {
 public:
  explicit Holder(const std::function<void()>& hold) {
    int ready[2], done[2];
    if (pipe(ready) != 0 || pipe(done) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(done[1]);
      hold();
      char byte = 'x';
      const bool told = write(ready[1], &byte, 1) == 1;
      _exit(told && read(done[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(done[0]);
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    done_ = done[1];
  }
  ~Holder() {
    close(done_);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  int done_;
};

TEST_F(LevelDbCursorTest, NamesTheProcessThatWritesTheDatabase) {
  {
    const Holder writer([&] {
      leveldb::DB* db = nullptr;
      if (!leveldb::DB::Open({}, path_, &db).ok()) _exit(1);
    });
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kIo, "process " + std::to_string(writer.pid()) +
                                                       " has the database open and locked"));
    SetDbLock(DbLock::kOff);
    EXPECT_EQ(CountRecords(), 300) << "without asking for the lock";
    SetDbLock(DbLock::kAuto);
  }
  EXPECT_EQ(CountRecords(), 300);
}

TEST_F(LevelDbCursorTest, ManyProcessesReadAndNoneWritesMeanwhile) {
  const Holder reader([&] { OpenCursor("LEVELDB", path_).release(); });
  EXPECT_EQ(CountRecords(), 300);
  leveldb::DB* db = nullptr;
  EXPECT_FALSE(leveldb::DB::Open({}, path_, &db).ok());
}

// Returns the names, sizes and times of all files of a folder.
std::string Facts(const std::string& folder) {
  std::set<std::string> facts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat info {};
    stat(entry.path().c_str(), &info);
    facts.insert(Join(entry.path().filename().string(), " ", info.st_size, " ", info.st_mtim.tv_sec,
                      ".", info.st_mtim.tv_nsec, "\n"));
  }
  return std::accumulate(facts.begin(), facts.end(), std::string());
}

// Opens a database with LevelDB, as Caffe does, and puts the records into it `rounds` times.
void PutWithLevelDb(const std::string& path, const Records& records, int rounds) {
  leveldb::Options options;
  options.create_if_missing = true;
  for (int round = 0; round < rounds; ++round) {
    leveldb::DB* raw = nullptr;
    ASSERT_TRUE(leveldb::DB::Open(options, path, &raw).ok());
    const std::unique_ptr<leveldb::DB> db(raw);
    for (const auto& [key, value] : records) db->Put({}, key, value);
  }
}

TEST_F(LevelDbCursorTest, ReadingLeavesTheFilesAsTheyAre) {
  const std::string log = folder_ / "log", tables = folder_ / "tables";
  PutWithLevelDb(log, records_, 1);
  PutWithLevelDb(tables, records_, 5);  // the fourth table on level 0 makes merging due
  for (const std::string& path : {path_, log, tables}) {
    const std::string before = Facts(path);
    for (int i = 0; i < 3; ++i) {
      const auto cursor = OpenCursor("LEVELDB", path);
      size_t count = 0;
      do {
        ASSERT_EQ(cursor->Key(), records_[count].first);
        ASSERT_EQ(cursor->Value(), records_[count].second);
        ++count;
      } while (!cursor->Next());
      EXPECT_EQ(count, records_.size());
    }
    EXPECT_EQ(Facts(path), before);
  }
}

TEST_F(LevelDbCursorTest, ReadsAFolderWithoutWritePermission) {
  std::filesystem::remove(path_ + "/LOCK");
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    chmod(entry.path().c_str(), 0444);
  }
  ASSERT_EQ(chmod(path_.c_str(), 0555), 0);
  {
    const AsNobody nobody;
    EXPECT_EQ(CountRecords(), 300);
  }
  chmod((path_ + "/CURRENT").c_str(), 0);
  {
    const AsNobody nobody;
    EXPECT_THAT(Refusal(), Refuses(ErrorCode::kNoPermission, "no permission to read a file"));
  }
  chmod(path_.c_str(), 0755);
}

}  // namespace
}  // namespace trainer

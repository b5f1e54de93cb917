// Reads LevelDB databases. LevelDB has no read-only mode: opening takes an exclusive lock and
// writes a log into the folder. Nothing here derives from its classes, which are built without
// RTTI.

#include "leveldb_cursor.h"

#include <fcntl.h>
#include <leveldb/db.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {
namespace {

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A table that is too short is an "Invalid argument" to LevelDB, an I/O error like a broken disk.
bool IsDiskTrouble(const leveldb::Status& status) {
  const std::string reason = status.ToString();
  return status.IsIOError() && !Contains(reason, "Invalid argument") &&
         !Contains(reason, "truncated");
}

// "process 1234", or "another process" where the system does not say which. Only for a database
// that this process has not open: closing the file would end its own lock.
std::string HolderOf(const std::string& path) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  FileOps& ops = FileOps::Posix();
  const FileHandle file(ops, ops.Open(path + "/LOCK", O_RDONLY | O_NONBLOCK, 0));
  const bool known = file.get() >= 0 && fcntl(file.get(), F_GETLK, &lock) == 0 &&
                     lock.l_type != F_UNLCK && lock.l_pid > 0;
  return known ? Join("process ", lock.l_pid) : "another process";
}

[[noreturn]] void FailOpen(const std::string& path, const leveldb::Status& status) {
  const std::string reason = EscapeControl(status.ToString());
  if (Contains(reason, "lock " + path)) {
    const bool ours = Contains(reason, "already held by process");
    throw Error(ErrorCode::kIo, {path},
                Join(ours ? "a writer of this process" : HolderOf(path),
                     " has the database open, and only one process at a time can open a LevelDB: "
                     "wait until it ends, or give each job its own copy of the folder. An LMDB "
                     "allows many readers; convert with 'trainer dataset convert' (",
                     reason, ")"));
  }
  if (Contains(reason, "Permission denied") || Contains(reason, "Read-only file system")) {
    throw Error(
        ErrorCode::kNoPermission, {path},
        Join("no permission to write: LevelDB writes a lock and a log into the folder even if it "
             "only reads; copy the database to a folder that you can write, or use LMDB (",
             reason, ")"));
  }
  if (IsDiskTrouble(status)) {
    throw Error(ErrorCode::kIo, {path}, Join("cannot open the database: ", reason));
  }
  throw Error(ErrorCode::kData, {path},
              Join("the database is damaged or incomplete; copy or make it again (", reason, ")"));
}

// One database, opened once for all cursors of this process.
class SharedDb {
 public:
  explicit SharedDb(const std::string& path) {
    struct stat info {};
    stat(path.c_str(), &info);
    id_ = {info.st_dev, info.st_ino};
    const std::lock_guard lock(Mutex());
    Open& open = AllOpen()[id_];
    if (open.users == 0) {
      leveldb::Options options;
      options.create_if_missing = false;
      options.paranoid_checks = true;
      options.max_open_files = 100;
      leveldb::DB* db = nullptr;
      const leveldb::Status status = leveldb::DB::Open(options, path, &db);
      open.db.reset(db);
      if (!status.ok()) {
        AllOpen().erase(id_);
        FailOpen(path, status);
      }
    }
    users_ = ++open.users;
    db_ = open.db.get();
  }

  // Closes under the lock, so that no other thread opens it meanwhile.
  ~SharedDb() {
    const std::lock_guard lock(Mutex());
    const auto found = AllOpen().find(id_);
    if (--found->second.users == 0) AllOpen().erase(found);
  }

  SharedDb(const SharedDb&) = delete;
  SharedDb& operator=(const SharedDb&) = delete;

  leveldb::DB* operator->() const { return db_; }
  int users() const { return users_; }  // when this one came

 private:
  using Id = std::pair<dev_t, ino_t>;  // of the folder
  struct Open {
    std::unique_ptr<leveldb::DB> db;
    int users = 0;
  };

  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<Id, Open>& AllOpen() {
    static std::map<Id, Open> open;
    return open;
  }

  Id id_;
  leveldb::DB* db_ = nullptr;
  int users_ = 0;
};

class LevelDbCursor final : public Cursor {
 public:
  explicit LevelDbCursor(const std::string& path)
      : Cursor(path), name_(EscapeControl(path)), db_(path) {
    read_.verify_checksums = true;
    // Each record is read once per epoch, but for ranks that read through this process: these go
    // through the same blocks at about the same time.
    read_.fill_cache = db_.users() > 1;
    iterator_.reset(db_->NewIterator(read_));
    SeekFirst();
  }

  std::string_view Key() const override { return View(iterator_->key()); }
  std::string_view Value() const override { return View(iterator_->value()); }

  void SeekFirst() override {
    last_.clear();
    Move("at its first record", [this] { iterator_->SeekToFirst(); });
    if (!iterator_->Valid()) {
      throw Error(ErrorCode::kData, {path()}, "the database is empty: it has no records");
    }
  }

  void SeekLast() override {
    last_.clear();
    Move("at its last record", [this] { iterator_->SeekToLast(); });
  }

  bool Next() override {
    last_ = Key();
    Move("after", [this] { iterator_->Next(); });
    if (iterator_->Valid()) return false;
    SeekFirst();
    return true;
  }

  bool Seek(std::string_view key) override { return Find(key) && (Key() == key || Return()); }

  bool SeekAtLeast(std::string_view key) override { return Find(key); }

 private:
  // Goes to the first record that is not before `key`.
  bool Find(std::string_view key) {
    last_ = Key();
    const std::string wanted(key);
    Move("after", [&] { iterator_->Seek(wanted); });
    return iterator_->Valid() || Return();
  }

  // Back to where Find started.
  bool Return() {
    Move("at", [this] { iterator_->Seek(last_); });
    return false;
  }

  static std::string_view View(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

  // LevelDB maps its tables, and holds locks while it reads them.
  template <class Step>
  void Move(const char* where, const Step& step) {
    const FaultContext context(name_);
    step();
    CheckMove(where);
  }

  // A damaged block is skipped silently unless the status is asked for after every move.
  void CheckMove(const char* where) const {
    const leveldb::Status status = iterator_->status();
    if (status.ok()) return;
    const std::string record = last_.empty() ? "" : Join(" record ", QuoteKey(last_));
    const std::string reason = EscapeControl(status.ToString());
    if (IsDiskTrouble(status) || status.IsNotFound()) {
      throw Error(ErrorCode::kIo, {path()},
                  Join("the database cannot be read ", where, record, " (", reason, ")"));
    }
    throw Error(ErrorCode::kData, {path()},
                Join("the database is damaged ", where, record, "; copy it or make it again (",
                     reason, ")"));
  }

  std::string name_;  // of the database, for messages
  SharedDb db_;       // outlives the iterator
  leveldb::ReadOptions read_;
  std::unique_ptr<leveldb::Iterator> iterator_;
  std::string last_;  // key of the record before the current move, for messages
};

}  // namespace
std::unique_ptr<Cursor> OpenLevelDb(const std::string& path) {
  return std::make_unique<LevelDbCursor>(path);
}

}  // namespace trainer

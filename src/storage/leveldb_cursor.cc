#include <fcntl.h>
#include <leveldb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "leveldb.h"
#include "leveldb_env.h"
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

// Names the process that holds LevelDB's exclusive lock, if the system says it.
std::string HolderOf(const std::string& path) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
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
    throw Error(ErrorCode::kIo, {path},
                Join(HolderOf(path),
                     " has the database open and locked, as programs do that write to it, and "
                     "Caffe: wait until it ends, or copy the folder (",
                     reason, ")"));
  }
  if (Contains(reason, "Permission denied")) {
    throw Error(ErrorCode::kNoPermission, {path},
                Join("no permission to read a file of the database (", reason, ")"));
  }
  if (IsDiskTrouble(status)) {
    throw Error(ErrorCode::kIo, {path}, Join("cannot open the database: ", reason));
  }
  throw Error(ErrorCode::kData, {path},
              Join("the database is damaged or incomplete; copy or make it again (", reason, ")"));
}

ReadOnlyLevelDb Open(const std::string& path) {
  ReadOnlyLevelDb opened;
  const leveldb::Status status = OpenLevelDbReadOnly(path, GetDbLock() != DbLock::kOff, &opened);
  if (!status.ok()) FailOpen(path, status);
  return opened;
}

class LevelDbCursor final : public Cursor {
 public:
  explicit LevelDbCursor(const std::string& path)
      : Cursor(path), name_(EscapeControl(path)), opened_(Open(path)) {
    leveldb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;  // each record is read once per epoch
    iterator_.reset(opened_.db->NewIterator(options));
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
  ReadOnlyLevelDb opened_;
  std::unique_ptr<leveldb::Iterator> iterator_;  // destroyed before opened_, which it uses
  std::string last_;  // key of the record before the current move, for messages
};

}  // namespace

std::unique_ptr<Cursor> OpenLevelDb(const std::string& path) {
  return std::make_unique<LevelDbCursor>(path);
}

}  // namespace trainer

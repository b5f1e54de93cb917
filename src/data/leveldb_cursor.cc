// Reads LevelDB databases. LevelDB has no read-only mode: opening takes an exclusive lock and
// writes a log into the folder. Nothing here derives from its classes, which are built without
// RTTI.

#include <leveldb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/data/cursor.h"

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

[[noreturn]] void FailOpen(const std::string& path, const leveldb::Status& status) {
  const std::string reason = EscapeControl(status.ToString());
  if (Contains(reason, "lock " + path)) {
    throw Error(ErrorCode::kStopped, {path},
                Join("LevelDB lets one reader in at a time, and another one (a job, or another net "
                     "of this one) holds the database; wait for it, copy the folder, or use LMDB (",
                     reason, ")"));
  }
  if (Contains(reason, "Permission denied") || Contains(reason, "Read-only file system")) {
    throw Error(ErrorCode::kNoPermission, {path},
                Join("LevelDB writes a lock and a log into the folder, even to read it, and may "
                     "not; copy the database to a folder of yours, or use LMDB (",
                     reason, ")"));
  }
  if (IsDiskTrouble(status)) {
    throw Error(ErrorCode::kIo, {path}, Join("cannot open the database: ", reason));
  }
  throw Error(ErrorCode::kData, {path},
              Join("the database is damaged or unfinished; copy or make it again (", reason, ")"));
}

class LevelDbCursor final : public Cursor {
 public:
  explicit LevelDbCursor(const std::string& path) : Cursor(path) {
    leveldb::Options options;
    options.create_if_missing = false;
    options.paranoid_checks = true;
    options.max_open_files = 100;
    leveldb::DB* db = nullptr;
    const leveldb::Status status = leveldb::DB::Open(options, path, &db);
    db_.reset(db);
    if (!status.ok()) FailOpen(path, status);
    leveldb::ReadOptions read;
    read.verify_checksums = true;
    read.fill_cache = false;  // each record is read once per epoch
    iterator_.reset(db_->NewIterator(read));
    SeekFirst();
  }

  std::string_view Key() const override { return View(iterator_->key()); }
  std::string_view Value() const override { return View(iterator_->value()); }

  void SeekFirst() override {
    iterator_->SeekToFirst();
    last_.clear();
    CheckMove("at its first record");
    if (!iterator_->Valid()) {
      throw Error(ErrorCode::kData, {path()}, "the database is empty: it holds no records");
    }
  }

  void SeekLast() override {
    iterator_->SeekToLast();
    last_.clear();
    CheckMove("at its last record");
  }

  bool Next() override {
    last_ = Key();
    iterator_->Next();
    CheckMove("after");
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
    iterator_->Seek({key.data(), key.size()});
    CheckMove("on the way from");
    return iterator_->Valid() || Return();
  }

  // Back to where Find started.
  bool Return() {
    iterator_->Seek(last_);
    CheckMove("at");
    return false;
  }

  static std::string_view View(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

  // A damaged block is skipped silently unless the status is asked for after every move.
  void CheckMove(const char* where) const {
    const leveldb::Status status = iterator_->status();
    if (status.ok()) return;
    const std::string record = last_.empty() ? "" : Join(" record ", QuoteKey(last_));
    throw Error(IsDiskTrouble(status) ? ErrorCode::kIo : ErrorCode::kData, {path()},
                Join("the database is damaged ", where, record, "; copy it or make it again (",
                     EscapeControl(status.ToString()), ")"));
  }

  std::unique_ptr<leveldb::DB> db_;  // outlives the iterator
  std::unique_ptr<leveldb::Iterator> iterator_;
  std::string last_;  // key of the record before the current move, for messages
};

const RegisterCursor<LevelDbCursor> kLevelDb("LEVELDB", "CURRENT");

}  // namespace
}  // namespace trainer

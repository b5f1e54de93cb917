// Reads LMDB databases (the unnamed database of a folder) through a memory map. LMDB trusts the
// file, so each call is guarded and each answer is checked.

#include <glog/logging.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "file_identity.h"
#include "lmdb/lmdb.h"
#include "lmdb/lmdb_readahead.h"
#include "lmdb/memory_maps.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {
namespace {

struct CloseCursor {
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};

// LMDB calls this if its own checks find a damaged page; otherwise it would abort the process.
void ThrowOnAssert(MDB_env* env, const char* message) {
  const char* path = "";
  mdb_env_get_path(env, &path);
  throw Error(ErrorCode::kData, {path}, Join("the database is damaged: LMDB reports ", message));
}

bool IsLockTrouble(int rc) {
  return rc == EACCES || rc == EROFS || rc == ENOLCK || rc == ENOSYS || rc == EAGAIN;
}

LmdbEnv OpenWith(const std::string& path, unsigned flags, int* rc) {
  MDB_env* raw = nullptr;
  *rc = mdb_env_create(&raw);
  LmdbEnv env(raw);
  if (*rc == MDB_SUCCESS) *rc = mdb_env_open(env.get(), path.c_str(), flags, 0664);
  return env;
}

// One warning for each database, however often it is opened.
bool IsFirstWithoutLock(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard lock(mutex);
  return known.insert(path).second;
}

// NOTLS: the reader's slot belongs to the transaction, so that the cursor may change threads. One
// thread at a time opens, because LMDB's lock on a new lock file holds between processes only.
LmdbEnv OpenEnv(const std::string& path) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const unsigned flags = MDB_RDONLY | MDB_NOTLS | (GetDbLock() == DbLock::kOff ? MDB_NOLOCK : 0u);
  int rc = 0;
  LmdbEnv env = OpenWith(path, flags, &rc);
  if (IsLockTrouble(rc) && (flags & MDB_NOLOCK) == 0) {
    const int reason = rc;
    env = OpenWith(path, flags | MDB_NOLOCK, &rc);
    LOG_IF(WARNING, rc == MDB_SUCCESS && IsFirstWithoutLock(path))
        << path << ": cannot lock lock.mdb (" << mdb_strerror(reason)
        << "); reading without a lock, so no program may write to the database during the run";
  }
  if (rc != MDB_SUCCESS) FailLmdb(path, "cannot open the database", rc);
  mdb_env_set_assert(env.get(), ThrowOnAssert);
  return env;
}

class LmdbCursor final : public Cursor {
 public:
  explicit LmdbCursor(const std::string& path)
      : Cursor(path), state_({JoinPath(path, "data.mdb")}) {
    CheckLmdbFile(path);
    extents_.emplace(path);
    const std::string name = EscapeControl(path);
    const FaultContext context(name);  // opening holds locks
    env_ = OpenEnv(path);
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &txn), "cannot begin to read");
    txn_.reset(txn);
    CheckFileSize();
    Check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "cannot open the unnamed database");
    MDB_stat stat;
    Check(mdb_stat(txn, dbi_, &stat), "cannot read the header");
    if (stat.ms_entries == 0) {
      throw Error(ErrorCode::kData, {path}, "the database is empty: it has no records");
    }
    records_ = static_cast<int64_t>(stat.ms_entries);
    MDB_cursor* cursor = nullptr;
    Check(mdb_cursor_open(txn, dbi_, &cursor), "cannot open a cursor");
    cursor_.reset(cursor);
    FindMap();
    SeekFirst();
  }

  std::string_view Key() const override { return View(key_); }
  std::string_view Value() const override { return View(value_); }
  // They are parts of the map, which nothing changes during the transaction.
  bool stable() const override { return true; }

  void SeekFirst() override {
    Check(Move(MDB_FIRST, nullptr), "cannot read the first record");
    passed_ = 1;
  }

  void SeekLast() override {
    Check(Move(MDB_LAST, nullptr), "cannot read the last record");
    passed_ = kUnknown;
  }

  bool Next() override {
    const int rc = Move(MDB_NEXT, nullptr);
    if (rc == MDB_SUCCESS) {
      if (passed_ != kUnknown) ++passed_;
      return false;
    }
    if (rc != MDB_NOTFOUND) Check(rc, Join("cannot read the record after ", QuoteKey(Key())));
    if (passed_ != kUnknown && passed_ != records_) {
      Damaged(Join("its header says ", records_, " records, but ", passed_, " were found"));
    }
    SeekFirst();
    return true;
  }

  bool Seek(std::string_view key) override { return Find(key, MDB_SET_KEY); }
  bool SeekAtLeast(std::string_view key) override { return Find(key, MDB_SET_RANGE); }

  void WillNeed(std::string_view value, uint64_t bytes) override {
    extents_->WillNeed(OffsetOf(value.data()), bytes);
  }

  int64_t Count() const override { return records_; }
  void CheckUnchanged() const override { state_.Check(path()); }

 private:
  static constexpr int64_t kUnknown = -1;

  static std::string_view View(const MDB_val& value) {
    return {static_cast<const char*>(value.mv_data), value.mv_size};
  }

  void Check(int rc, const std::string& what) const {
    if (rc != MDB_SUCCESS) FailLmdb(path(), what, rc);
  }

  // The transaction's last page must be inside the file: the map reaches further than a truncated
  // file, and touching it there kills the process with SIGBUS.
  void CheckFileSize() {
    Check(mdb_env_get_fd(env_.get(), &fd_), "cannot read the header");
    struct stat file;
    if (fstat(fd_, &file) != 0) FailLmdb(path(), "cannot read data.mdb", errno);
    file_bytes_ = file.st_size;
    MDB_envinfo info;
    MDB_stat stat;
    Check(mdb_env_info(env_.get(), &info), "cannot read the header");
    Check(mdb_env_stat(env_.get(), &stat), "cannot read the header");
    const auto pages = static_cast<uint64_t>(info.me_last_pgno) + 1;
    const uint64_t present = static_cast<uint64_t>(file_bytes_) / stat.ms_psize;
    if (info.me_last_pgno == UINT64_MAX || pages > present) {
      throw Error(
          ErrorCode::kData, {path()},
          Join("data.mdb is truncated: ", file_bytes_, " bytes instead of ", pages, " pages of ",
               stat.ms_psize, " bytes (", static_cast<double>(pages) * stat.ms_psize,
               " bytes); copy the database again"));
    }
  }

  // LMDB does not say where its map is: the first key is in it. Without /proc nothing is checked.
  void FindMap() {
    MDB_val key{}, value{};
    int rc = MDB_SUCCESS;
    const MapFault fault =
        TryMapped([&] { rc = mdb_cursor_get(cursor_.get(), &key, &value, MDB_FIRST); });
    if (fault != MapFault::kNone || rc != MDB_SUCCESS) return;  // SeekFirst meets it again
    std::error_code failed;
    const std::string file =
        std::filesystem::canonical(JoinPath(path(), "data.mdb"), failed).string();
    const auto at = reinterpret_cast<uintptr_t>(key.mv_data);
    bool is_mapped = false;
    MemoryMap map;
    for (MemoryMaps maps; maps.Next(&map);) {
      if (map.file != file || map.offset != 0) continue;
      is_mapped = true;
      if (at < map.start || at >= map.end) continue;
      start_ = reinterpret_cast<const char*>(map.start);
      named_.emplace(path(), start_, map.end - map.start, fd_);
    }
    if (is_mapped && start_ == nullptr) Damaged("the key of a record is outside the file");
  }

  uint64_t OffsetOf(const void* data) const {
    return start_ == nullptr ? 0 : static_cast<uint64_t>(static_cast<const char*>(data) - start_);
  }

  [[noreturn]] void Damaged(const std::string& why) const {
    throw Error(ErrorCode::kData, {path()},
                Join("the database is damaged: ", why, "; copy it or make it again"));
  }

  // A damaged page may lead LMDB to any address. `wanted`: the key to seek.
  int Move(MDB_cursor_op op, const MDB_val* wanted) {
    MDB_val key{}, value{};
    if (wanted != nullptr) key = *wanted;
    int rc = MDB_SUCCESS, order = 1;
    const bool compare = op == MDB_NEXT;
    const MapFault fault = TryMapped([&] {
      rc = mdb_cursor_get(cursor_.get(), &key, &value, op);
      if (rc == MDB_SUCCESS && compare && IsInside(key) && IsInside(value)) {
        order = mdb_cmp(txn_.get(), dbi_, &key, &key_);
      }
    });
    // Without a record's name: reading its key could fault again.
    if (fault != MapFault::kNone) ThrowMapFault(path(), fault);
    if (rc != MDB_SUCCESS) return rc;
    CheckInside(key, value);
    if (compare) PrefetchNext(key);
    unsigned flags = 0;
    if (order < 0 || (order == 0 && (mdb_dbi_flags(txn_.get(), dbi_, &flags) != MDB_SUCCESS ||
                                     (flags & MDB_DUPSORT) == 0))) {
      Damaged(Join("after record ", QuoteKey(Key()), " comes ", QuoteKey(View(key)),
                   ", which must come before it"));
    }
    key_ = key;
    value_ = value;
    extents_->OnRecord(OffsetOf(value.mv_data));
    return rc;
  }

  // Equal small records are at the same places of successive pages. A wrong guess does no harm.
  static void PrefetchNext(const MDB_val& key) {
    constexpr uintptr_t kPageBytes = 4096;
    const auto* const at = static_cast<const char*>(key.mv_data) + kPageBytes;
    __builtin_prefetch(at);
    __builtin_prefetch(at - reinterpret_cast<uintptr_t>(at) % kPageBytes);  // the page's header
  }

  bool Find(std::string_view key, MDB_cursor_op op) {
    if (key.empty() || key.size() > static_cast<size_t>(mdb_env_get_maxkeysize(env_.get()))) {
      return false;
    }
    const std::string here(Key());
    passed_ = kUnknown;
    if (SetKey(key, op) == MDB_SUCCESS) return true;
    Check(SetKey(here, MDB_SET_KEY), Join("cannot read record ", QuoteKey(here)));
    return false;
  }

  int SetKey(std::string_view wanted, MDB_cursor_op op) {
    const MDB_val key{wanted.size(), const_cast<char*>(wanted.data())};
    return Move(op, &key);
  }

  bool IsInside(const MDB_val& value) const {
    const auto file_bytes = static_cast<uint64_t>(file_bytes_);
    return value.mv_data != nullptr && value.mv_size <= file_bytes &&
           (start_ == nullptr || OffsetOf(value.mv_data) <= file_bytes - value.mv_size);
  }

  void CheckInside(const MDB_val& key, const MDB_val& value) const {
    if (!IsInside(key)) Damaged("the key of a record is outside the file");
    if (IsInside(value)) return;
    throw Error(ErrorCode::kData, {path()},
                Join("record ", QuoteKey(View(key)), " claims to have ", value.mv_size,
                     " bytes, which is more than the rest of the file: the database is damaged"));
  }

  int64_t file_bytes_ = 0, records_ = 0;
  int64_t passed_ = kUnknown;  // records from the first to this one, where each was visited
  MDB_dbi dbi_ = 0;
  FileIdentity state_;
  std::optional<LmdbReadahead> extents_;
  int fd_ = -1;                  // of data.mdb, which LMDB owns
  const char* start_ = nullptr;  // of the map; null: unknown
  std::optional<MappedRange> named_;
  LmdbEnv env_;
  LmdbTxn txn_;
  std::unique_ptr<MDB_cursor, CloseCursor> cursor_;
  MDB_val key_{}, value_{};
};

}  // namespace

std::unique_ptr<Cursor> OpenLmdb(const std::string& path) {
  return std::make_unique<LmdbCursor>(path);
}

}  // namespace trainer

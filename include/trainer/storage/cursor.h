#pragma once
// Reads sets of records, in the formats of format.h. Databases return them in order of the keys.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trainer {

// Iterates over a set that has at least one record. Used by one thread at a time.
//
// Members throw kData for damaged files or another format, and kIo if reading fails. Each error
// names the database, and the record if it is known.
class Cursor {
 public:
  explicit Cursor(std::string path) : path_(std::move(path)) {}
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Returns the path as given: a database's folder, or a file.
  const std::string& path() const { return path_; }

  // The current record. Valid until the next move, or as long as the cursor if stable().
  virtual std::string_view Key() const = 0;
  virtual std::string_view Value() const = 0;
  virtual bool stable() const { return false; }
  // Returns the label of the current record; no value if it has none. Reads no more of the record
  // than it must. Throws kData if Value() is not a Datum.
  virtual std::optional<int32_t> Label() const;

  virtual void SeekFirst() = 0;
  virtual void SeekLast() = 0;
  // Moves to the next record, or from the last one to the first. Returns true in the latter case.
  virtual bool Next() = 0;
  // Moves to the record with exactly this key. Returns false and does not move if there is none.
  virtual bool Seek(std::string_view key) = 0;
  // Moves to the first record whose key is not less than `key`. Returns false if there is none.
  virtual bool SeekAtLeast(std::string_view key) = 0;

  // Hint: about `bytes` from this stable value on will be read in order.
  virtual void WillNeed(std::string_view /*value*/, uint64_t /*bytes*/) {}

  // Throws kData if the files changed since they were opened, as far as that can be detected.
  virtual void CheckUnchanged() const {}

  // Number of records if it is known without reading them, else -1.
  virtual int64_t Count() const { return -1; }
  // Total size of all values if the set is not a folder, else 0.
  virtual uint64_t StoredBytes() const { return 0; }

 private:
  std::string path_;
};

// Opens the set at `path` read-only, at its first record. `format` is a name of format.h: "LMDB",
// "LEVELDB", "TAR" or "HDF5". Records of tar files come in the order of the files, see tar_index.h.
// Any number of cursors and processes may read a set.
//
// Throws kNoInput if the folder does not exist or has no database of this format (the message names
// the format that it has), kNoPermission if it may not be read, kIo if another process writes to it
// (LevelDB), kData if it is empty, truncated, damaged, or of another format or version, kUsage for
// an unknown format.
std::unique_ptr<Cursor> OpenCursor(const std::string& format, const std::string& path);

// Whether databases are opened with their lock (lock.mdb of an LMDB, LOCK of a LevelDB). kAuto
// tries it first, and opens the database without a lock where there can be none. kOff never locks,
// so no program may write to the database meanwhile. One setting for the process, at first kAuto.
enum class DbLock { kAuto, kOff };
void SetDbLock(DbLock lock);
DbLock GetDbLock();

// Formats a key for a message: quoted, control bytes escaped, cut after 80 bytes.
std::string QuoteKey(std::string_view key);

}  // namespace trainer

#pragma once
// Reads record databases: keys and values, in byte order of the keys. A backend is one file in
// src/storage/ that registers itself; see RegisterCursor.

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/registry.h"

namespace trainer {

// Iterates over a database that has at least one record. Used by one thread at a time.
//
// Errors: kData for damaged files or another format, kIo if reading fails. Each names the database,
// and the record if it is known.
class Cursor {
 public:
  explicit Cursor(std::string path) : path_(std::move(path)) {}
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // The database's folder, as given.
  const std::string& path() const { return path_; }

  // The current record. Valid until the next move, or as long as the cursor if stable().
  virtual std::string_view Key() const = 0;
  virtual std::string_view Value() const = 0;
  virtual bool stable() const { return false; }

  virtual void SeekFirst() = 0;
  virtual void SeekLast() = 0;
  // Moves to the next record, or from the last one to the first. Returns true in the latter case.
  virtual bool Next() = 0;
  // Moves to the record with exactly this key. Returns false and does not move if there is none.
  virtual bool Seek(std::string_view key) = 0;
  // Moves to the first record whose key is not less. Returns false and does not move if there is
  // none.
  virtual bool SeekAtLeast(std::string_view key) = 0;

  // Hint: only the value of every `count`-th record will be read, and the keys of the others. A
  // cursor that reads ahead uses it.
  virtual void SetStride(uint64_t count) { static_cast<void>(count); }

  // Hint: about `bytes` from this value on, which is stable, will be read in order. A cursor may
  // start to read them from the disk.
  virtual void WillNeed(std::string_view value, uint64_t bytes) {
    static_cast<void>(value), static_cast<void>(bytes);
  }

  // Throws kData if the files changed since they were opened, as far as that can be detected.
  virtual void CheckUnchanged() const {}

  // Number of records if it is known without reading them, else -1.
  virtual int64_t Count() const { return -1; }
  // Total size of all values if the set is not a folder, else 0.
  virtual uint64_t StoredBytes() const { return 0; }

 private:
  std::string path_;
};

using CursorRegistry = Registry<Cursor, const std::string&>;

// Opens the database in folder `path` read-only, at its first record. `backend` is a name that
// data_param accepts: "LMDB", "LEVELDB" or "TAR". TAR has files instead of a folder, see
// tar_index.h, and its records come in the order of the files. One database may be open several
// times in this process. Several ranks share a LevelDB as record_server.h says.
//
// Throws kNoInput: the folder does not exist or has no database of this backend (the message names
// the backend that it is of). kNoPermission: it may not be read. kIo: another process has it open
// (LevelDB). kData: empty, truncated, damaged, of another format or version. kUsage: unknown
// backend.
std::unique_ptr<Cursor> OpenCursor(const std::string& backend, const std::string& path);

// Name of the backend whose marker file is in the folder, or "".
std::string DetectBackend(const std::string& path);

// Calls DetectBackend. Throws kNoInput for a folder without a database. Returns LMDB for a path
// that is not a folder, so that opening it explains what is wrong.
std::string BackendOf(const std::string& path);

// Whether several processes may open a database at the same time.
enum class CursorAccess { kShared, kExclusive };

// const RegisterCursor<LmdbCursor> kLmdb("LMDB", "data.mdb"); The second argument is the file that
// marks the backend's folders, or "" for a backend that finds its files itself.
struct CursorMarkers {
  static void Add(const std::string& backend, const std::string& marker, CursorAccess access);
};
template <std::constructible_from<const std::string&> T>
struct RegisterCursor {
  RegisterCursor(const std::string& backend, const std::string& marker,
                 CursorAccess access = CursorAccess::kShared) {
    CursorRegistry::Get().Add(
        backend, [](const std::string& path) { return std::unique_ptr<Cursor>(new T(path)); });
    CursorMarkers::Add(backend, marker, access);
  }
};

// The key for a message: quoted, control bytes escaped, cut after 80 bytes.
std::string QuoteKey(std::string_view key);

}  // namespace trainer

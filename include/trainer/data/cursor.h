#pragma once
// Reading record databases: keys and values, in byte order of the keys. A backend is one file in
// src/data/ that registers itself; see RegisterCursor.

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/registry.h"

namespace trainer {

// A position in a database that holds at least one record. Used by one thread at a time.
//
// Errors: kData for damaged or foreign files, kIo when reading fails; each names the database, and
// the record where it is known.
class Cursor {
 public:
  explicit Cursor(std::string path) : path_(std::move(path)) {}
  virtual ~Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // The database's folder, as given.
  const std::string& path() const { return path_; }

  // The current record. Valid until the next move, or as long as the cursor.
  virtual std::string_view Key() const = 0;
  virtual std::string_view Value() const = 0;
  virtual bool RecordsStayValid() const { return false; }

  virtual void SeekFirst() = 0;
  virtual void SeekLast() = 0;
  // Goes to the next record, or from the last one to the first. Returns whether it did the latter.
  virtual bool Next() = 0;
  // Goes to the record with exactly this key. Without one it returns false and stays where it is.
  virtual bool Seek(std::string_view key) = 0;
  // Goes to the first record whose key is not less. Without one it returns false and stays.
  virtual bool SeekAtLeast(std::string_view key) = 0;

  // From here on each `count`-th record is looked at, and of the others keys alone: what a cursor
  // that reads ahead goes by.
  virtual void ReadsEvery(uint64_t count) { static_cast<void>(count); }

  // About `bytes` from this value on, one that stays valid, are going to be read in order: what is
  // on a disk may be fetched meanwhile.
  virtual void WillRead(std::string_view value, uint64_t bytes) {
    static_cast<void>(value), static_cast<void>(bytes);
  }

  // Throws kData where the files were changed since they were opened, as far as that can be told.
  virtual void CheckUnchanged() const {}

  // How many records there are, where that is known without reading them; else -1.
  virtual int64_t Count() const { return -1; }
  // The bytes of all values, where the database is no folder; else 0.
  virtual uint64_t StoredBytes() const { return 0; }

 private:
  std::string path_;
};

using CursorRegistry = Registry<Cursor, const std::string&>;

// Opens the database in folder `path` read only, at its first record. `backend` is a name that
// data_param takes: "LMDB", "LEVELDB", "TAR"; the last one has files in place of a folder, see
// tar_index.h, and its records come in the order in which they lie there. One database may be open
// several times in this process; of ranks see record_host.h.
//
// Throws kNoInput: no such folder, or no database in it (saying whose it is, if another backend's).
// kNoPermission: it may not be read. kIo: another process holds it (LevelDB). kData: empty,
// truncated, damaged, of another format or version. kUsage: unknown backend.
std::unique_ptr<Cursor> OpenCursor(const std::string& backend, const std::string& path);

// The backend whose marker file is in the folder, or "".
std::string DetectBackend(const std::string& path);

// Whether one process at a time may open a database.
enum class CursorAccess { kShared, kExclusive };

// const RegisterCursor<LmdbCursor> kLmdb("LMDB", "data.mdb");  the file that marks its folders, or
// "" for a backend that looks for its files itself.
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

// 'key' for a message: quoted, control bytes escaped, cut after 80 bytes.
std::string QuoteKey(std::string_view key);

}  // namespace trainer

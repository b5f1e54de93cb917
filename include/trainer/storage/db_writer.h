#pragma once
// Writes record databases that Caffe and this program read.

#include <memory>
#include <string>
#include <string_view>

namespace trainer {

// A new database. Used by one thread at a time. Records after the last Commit are lost.
//
// Members throw kIo if writing fails (disk full, quota), and kData for a key that LMDB cannot store
// (empty or over 511 bytes). After an error the database is incomplete: remove it.
class DbWriter {
 public:
  virtual ~DbWriter() = default;
  // Adds a record, or replaces the value of a key that exists. Rising keys are fastest.
  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Returns when all records so far are on the disk.
  virtual void Commit() = 0;
};

// Creates the folder `path` (mode 0777 without the umask's bits) and an empty database in it.
// Throws kCannotCreate if `path` exists or the folder cannot be created, kUsage for an unknown
// backend.
std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path);

}  // namespace trainer

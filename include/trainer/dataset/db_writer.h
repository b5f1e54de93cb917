#pragma once
// Writing record databases that Caffe and this program read.

#include <concepts>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/registry.h"

namespace trainer {

// A new database. Used by one thread at a time. What was not committed is lost with the object.
//
// Errors: kIo when writing fails (disk full, quota), kData for a key that LMDB cannot hold (empty
// or over 511 bytes). After an error the database is unfinished: remove it.
class DbWriter {
 public:
  virtual ~DbWriter() = default;
  // Adds a record. A key that is there already gets the new value. Rising keys are fastest.
  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Returns when all records so far are on the disk.
  virtual void Commit() = 0;
};

using DbWriterRegistry = Registry<DbWriter, const std::string&>;

// Makes the folder `path` (mode 0777 without the umask's bits) and an empty database in it. Throws
// kCannotCreate when something is there already or the folder cannot be made, kUsage for an unknown
// backend.
std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path);

// const RegisterDbWriter<LmdbWriter> kLmdb("LMDB");
template <std::constructible_from<const std::string&> T>
struct RegisterDbWriter {
  explicit RegisterDbWriter(const std::string& backend) {
    DbWriterRegistry::Get().Add(
        backend, [](const std::string& path) { return std::unique_ptr<DbWriter>(new T(path)); });
  }
};

}  // namespace trainer

#pragma once
// Writes databases that Caffe and this program read.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datum.pb.h"
#include "trainer/storage/record_writer.h"

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

// Creates the folder `path` (mode 0777 without the umask's bits) with an empty database. Throws
// kCannotCreate if `path` exists or cannot be created, kUsage for an unknown backend.
std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path);

// Writes under a hidden name and renames in Finish; without Finish, nothing is left. Keys begin
// with the records' numbers. Used by one thread. Throws as CreateDb and DbWriter do.
class DatabaseWriter final : public RecordWriter {
 public:
  // `digits`: length of the keys, with leading zeros. Throws kCannotCreate when `path` exists.
  DatabaseWriter(const std::string& backend, std::string path, int digits = 8);
  ~DatabaseWriter() override;

  // Throws kUsage for a record whose number needs more digits, because keys would be out of order.
  void Put(const caffe::Datum& datum);
  // Adds a record as it is stored.
  void Put(const StoredRecord& record) override { Put(record.key, record.value); }
  void Finish() override;

  int64_t records() const { return records_; }

 private:
  void Put(std::string_view key, std::string_view value);

  std::string path_, temp_;
  int digits_;
  std::unique_ptr<DbWriter> writer_;  // null once the database is in place
  std::string value_;
  int64_t records_ = 0;
};

// Creates a folder and those above it. The destructor removes those that are still empty.
class NewFolders {
 public:
  // Throws kCannotCreate.
  explicit NewFolders(const std::string& path);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  void RemoveEmpty();

  std::vector<std::string> made_;  // the lowest first
};

// Throws kUsage for a number of `what` images that is not 1 to 10^8: keys have eight digits.
void CheckRecordCount(const char* what, int64_t count);

// The suffix of a database's name: "_lmdb" for "LMDB".
std::string DatabaseSuffix(const std::string& backend);

}  // namespace trainer

#pragma once
// Writes new databases, which get their names only when they are complete.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datum.pb.h"
#include "trainer/storage/db_writer.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// Writes under a hidden name and renames in Finish; without Finish, nothing is left. Keys begin
// with the records' numbers. Used by one thread. Throws as CreateDb and DbWriter do.
class DatabaseWriter final : public RecordWriter {
 public:
  // `digits`: length of the keys, with leading zeros. Throws kCannotCreate when `path` exists.
  DatabaseWriter(const std::string& backend, std::string path, int digits = 8);
  ~DatabaseWriter() override;
  DatabaseWriter(const DatabaseWriter&) = delete;
  DatabaseWriter& operator=(const DatabaseWriter&) = delete;

  // Throws kUsage for a record whose number needs more digits, because keys would be out of order.
  void Put(const caffe::Datum& datum) { Put(records_, "", datum); }
  // Adds a record whose key is the caller's number and a suffix.
  void Put(int64_t number, const std::string& suffix, const caffe::Datum& datum);
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

// Creates a folder and the missing folders above it. The destructor removes the created folders
// that are still empty.
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

// Throws kUsage for a number of `what` ("training") images below 1 or above 10^8, beyond which keys
// of eight digits are out of order.
void CheckRecordCount(const char* what, int64_t count);

// The suffix of a database's name: "_lmdb" for "LMDB".
std::string DatabaseSuffix(std::string backend);

}  // namespace trainer

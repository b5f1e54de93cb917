#pragma once
// A database that exists under its name only when it is whole.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datum.pb.h"
#include "trainer/dataset/db_writer.h"

namespace trainer {

// Writes under a hidden name and renames at the end; without Finish nothing stays. Keys begin with
// the records' numbers. Used by one thread. Errors: those of CreateDb and DbWriter.
class NewDatabase {
 public:
  // `digits`: length of the keys, with leading zeros. Throws kCannotCreate when `path` exists.
  NewDatabase(const std::string& backend, std::string path, int digits = 8);
  ~NewDatabase();
  NewDatabase(const NewDatabase&) = delete;
  NewDatabase& operator=(const NewDatabase&) = delete;

  // Throws kUsage for a record whose number needs more digits, as keys would be out of order.
  void Put(const caffe::Datum& datum) { Put(records_, "", datum); }
  // The same with a number of the caller's, and a suffix of the key.
  void Put(int64_t number, const std::string& suffix, const caffe::Datum& datum);
  // A record as it is stored.
  void Put(std::string_view key, std::string_view value);
  void Finish();

  int64_t records() const { return records_; }

 private:
  std::string path_, temp_;
  int digits_;
  std::unique_ptr<DbWriter> writer_;  // null once the database is in place
  std::string value_;
  int64_t records_ = 0;
};

// Makes a folder and those above it, and in the end takes those away again that it made and nobody
// put anything into.
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

// "_lmdb" of "LMDB": how the databases of a set are named.
std::string DatabaseSuffix(std::string backend);

}  // namespace trainer

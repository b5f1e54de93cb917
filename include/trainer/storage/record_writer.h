#pragma once
// Writes new sets of records in any format.

#include <cstdint>
#include <memory>
#include <string>

namespace trainer {

// A record that is copied from one set to another. `value` is a Datum, as databases store it.
struct StoredRecord {
  std::string key, value;
};

struct WriteOptions {
  std::string path;
  std::string backend = "LMDB";  // for a path that ends in neither .h5, .hdf5 nor .tar
  uint64_t shard_bytes = 0;  // of a tar file: a new one, name-000000.tar, ..., from this size on
};

// Writes a new set, which gets its name only when it is complete. Used by one thread, except
// Prepare.
//
// Errors: as DatabaseWriter, AtomicFile and Hdf5Appender throw; kCannotCreate for a name that
// exists; kData for a record that such a set cannot store, or whose key was there before.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Converts a record to what this set stores: decodes or encodes its image. Called from any
  // thread, before Put.
  virtual void Prepare(StoredRecord* record) const { static_cast<void>(record); }
  // Adds a record after Prepare.
  virtual void Put(const StoredRecord& record) = 0;
  // Gives the set its name.
  virtual void Finish() = 0;
};

// The format follows from the name of the path: .h5 and .hdf5, .tar, else a database.
std::unique_ptr<RecordWriter> OpenRecordWriter(const WriteOptions& output);

// "00000012", as Caffe's converters number records. Throws kUsage above 99999999, where keys would
// be out of order.
std::string NumberedKey(int64_t number);

// Throws kCannotCreate if something exists at `path`.
void RefuseExisting(const std::string& path);

}  // namespace trainer

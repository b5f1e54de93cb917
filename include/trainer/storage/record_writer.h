#pragma once

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
  std::string backend = "LMDB";  // for a path without one of OpenRecordWriter's extensions
  uint64_t shard_bytes = 0;      // of a tar file, after which a new one begins: name-000001.tar
  bool are_rows = false;         // records are C x 1 x 1, and `data` of arrays is (N, C)
};

// Writes a new set, which gets its name only when it is complete. Used by one thread, except
// Prepare.
//
// Throws as DatabaseWriter, AtomicFile and OpenArrayWriter do; kCannotCreate for a name that
// exists; kData for a record that such a set cannot store, or whose key was already added.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Converts a record to the form that this set stores. Any thread, before Put.
  virtual void Prepare(StoredRecord* /*record*/) const {}
  // Adds a record after Prepare.
  virtual void Put(const StoredRecord& record) = 0;
  // Gives the set its name.
  virtual void Finish() = 0;
};

// Opens a writer. The path's extension is the format: .h5, .hdf5, .npz, .tar; else a database.
std::unique_ptr<RecordWriter> OpenRecordWriter(const WriteOptions& output);

// Returns "00000012", as Caffe numbers records. Throws kUsage above 99999999.
std::string NumberedKey(int64_t number);

// Throws kCannotCreate if something exists at `path`.
void RefuseExisting(const std::string& path);

}  // namespace trainer

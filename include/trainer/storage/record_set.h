#pragma once
// Sets of records in any format: databases, HDF5 files, tar files.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace trainer {

// A record that is copied from one set to another. `value` is a Datum, as databases store it.
struct StoredRecord {
  std::string key, value;
};

// Reads a set from the first record to the last. Used by one thread. Errors name the set, and the
// record if it is known.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // False after the last record.
  virtual bool Next(StoredRecord* record) = 0;
  // Number of records if it is known, else 0.
  virtual int64_t Count() const { return 0; }
};

// The format of the set at `path`, or of a new one with that name: "LMDB", "LEVELDB", "HDF5" (a
// file, or a .txt that lists some) or "TAR" (a file, a pattern of names, or a text that lists
// some). LMDB if nothing is there and the name has no type.
std::string KindOfSet(const std::string& path);

// Throws as OpenCursor, Hdf5Reader and ReadHdf5List do. HDF5 files hold the datasets data and,
// where they have labels, label; a row is a record, and its key its number.
std::unique_ptr<RecordReader> OpenRecords(const std::string& path);

struct WriteOptions {
  std::string path;
  std::string backend = "LMDB";  // for a path that ends in neither .h5, .hdf5 nor .tar
  uint64_t shard_bytes = 0;  // of a tar file: a new one, name-000000.tar, ..., from this size on
};

// Writes a new set, which gets its name only when it is complete. Used by one thread, except
// Prepare.
//
// Errors: as NewDatabase, AtomicFile and Hdf5Appender throw; kCannotCreate for a name that exists;
// kData for a record that such a set cannot store, or whose key was there before.
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

std::unique_ptr<RecordWriter> OpenRecordWriter(const WriteOptions& output);

// "00000012", as Caffe's converters number records. Throws kUsage above 99999999, where keys would
// be out of order.
std::string NumberedKey(int64_t number);

}  // namespace trainer

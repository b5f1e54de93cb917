#pragma once
// Sets of records, whatever they are stored in: databases, HDF5 files, tar files.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace trainer {

// A record on its way from one set to another. `value` is a Datum, as databases hold it.
struct StoredRecord {
  std::string key, value;
};

// Reads a set from end to end. One thread. Errors name the set and, where it is known, the record.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // False after the last record.
  virtual bool Next(StoredRecord* record) = 0;
  // How many records there are, where that is known; else 0.
  virtual int64_t Count() const { return 0; }
};

// What a path holds, or will hold by its name: "LMDB", "LEVELDB", "HDF5" (a file, or a .txt that
// lists some), "TAR" (a file, a pattern of names, or a text that lists some). LMDB for a path
// without a type that is not there.
std::string KindOfSet(const std::string& path);

// Throws as OpenCursor, Hdf5Reader and ReadHdf5List do. HDF5 files hold the datasets data and,
// where they have labels, label; a row is a record, and its key its number.
std::unique_ptr<RecordReader> OpenRecords(const std::string& path);

struct RecordOutput {
  std::string path;
  std::string backend = "LMDB";  // for a path that ends in neither .h5, .hdf5 nor .tar
  uint64_t shard_bytes = 0;  // of a tar file: a new one, name-000000.tar, ..., from this size on
};

// A new set that exists under its name only when it is whole. One thread, but for Prepare.
//
// Errors: those of NewDatabase, AtomicFile, Hdf5Appender; kCannotCreate for a name that is there;
// kData for a record that such a set cannot hold, or whose key was there before.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Makes of a record what this set stores: decodes or encodes its image. Any thread, before Put.
  virtual void Prepare(StoredRecord* record) const { static_cast<void>(record); }
  // A record that was prepared.
  virtual void Put(const StoredRecord& record) = 0;
  // Puts the set in place.
  virtual void Finish() = 0;
};

std::unique_ptr<RecordWriter> MakeRecords(const RecordOutput& output);

// "00000012", as Caffe's converters number records. Throws kUsage above 99999999, where keys would
// be out of order.
std::string NumberedKey(int64_t number);

}  // namespace trainer

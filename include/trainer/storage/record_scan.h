#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/format.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// Reads all records of a set once, in order. Used by one thread. Errors name the set.
class RecordScan {
 public:
  // Throws as OpenCursor, Hdf5Reader and ReadHdf5List do. Keys of HDF5 files are numbers of rows.
  explicit RecordScan(const std::string& path) : cursor_(OpenCursor(DetectFormat(path), path)) {}

  // Returns false after the last record.
  bool Next(StoredRecord* record) {
    if (started_ ? cursor_->Next() : cursor_->Count() == 0) return false;
    started_ = true;
    record->key = cursor_->Key();
    record->value = cursor_->Value();
    return true;
  }
  // Number of records if it is known, else 0.
  int64_t Count() const { return std::max<int64_t>(cursor_->Count(), 0); }

 private:
  std::unique_ptr<Cursor> cursor_;
  bool started_ = false;
};

}  // namespace trainer

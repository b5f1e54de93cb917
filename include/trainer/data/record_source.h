#pragma once
// Where a Prefetcher takes its records from: a database, a list of image files, ...

#include <memory>
#include <string>
#include <string_view>

#include "trainer/data/cursor.h"
#include "trainer/data/datum.h"

namespace trainer {

// A place in an endless row of records. Used by one thread at a time.
//
// Errors: of Read, kData, kNoInput, kIo, ..., naming the source and the record.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The database or list, for messages.
  virtual const std::string& path() const = 0;
  // Names the current record, in messages and in snapshots.
  virtual std::string Key() const = 0;
  // The current record; valid until the next call.
  virtual const DatumView& Read() = 0;

  virtual void SeekFirst() = 0;
  // Goes on. Returns whether an epoch ended.
  virtual bool Next() = 0;
  // Goes to where Key() gave this. When there is no such record it returns false and stays.
  virtual bool Seek(std::string_view key) = 0;
};

// The Datum records of a database; encoded ones are decoded to `colors`.
std::unique_ptr<RecordSource> MakeDatabaseSource(std::unique_ptr<Cursor> cursor, Colors colors);

}  // namespace trainer

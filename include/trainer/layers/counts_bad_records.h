#pragma once

#include <cstdint>

namespace trainer {

// What a layer also is that reads records, some of which may be bad: see input/bad_records.h.
class CountsBadRecords {
 public:
  virtual ~CountsBadRecords() = default;
  // Whether bad records are skipped; else they end the run, and nothing is counted.
  virtual bool SkipsBadRecords() const = 0;
  // Of the batches that this replica's passes used since the last call.
  virtual int64_t TakeBadRecords() = 0;
  // Adds those of all replicas to the count of this epoch, which snapshots hold. Throws kData when
  // there are more than are to be skipped.
  virtual void AddBadRecords(int64_t of_all) = 0;
};

}  // namespace trainer

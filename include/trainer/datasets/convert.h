#pragma once
// Converts sets to other formats and splits them.

#include <cstdint>
#include <string>

#include "trainer/datasets/split.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// Writes the records of a set, in their order, to another one. From database to database, keys and
// values are copied unchanged. Keys of records from a file begin with their number, so that a
// database keeps their order. Returns the number of records. Errors: as RecordScan and
// OpenRecordWriter throw.
int64_t ConvertRecords(const std::string& source, const WriteOptions& output, int threads);

struct SplitOptions {
  SplitSize share;          // what goes to the second set
  bool stratified = false;  // of each label the same share; records without a label are one group
  uint64_t seed = 1;
  int threads = 1;
};

struct SplitResult {
  int64_t first = 0, second = 0;  // records
};

// Splits the records of a set into two sets, each in the original order.
SplitResult SplitRecords(const std::string& source, const WriteOptions& first,
                         const WriteOptions& second, const SplitOptions& options);

}  // namespace trainer

#pragma once
// Sets of one kind made of sets of another, and parts of sets.

#include <cstdint>
#include <string>

#include "trainer/dataset/record_set.h"
#include "trainer/dataset/share.h"

namespace trainer {

// The records of a set, in their order, in another one. From a database to a database they are the
// same bytes under the same keys; the keys of records that come from a file begin with their
// number, so that a database keeps their order. Returns how many there were. Errors also: those of
// OpenRecords and MakeRecords.
int64_t ConvertRecords(const std::string& source, const RecordOutput& output, int threads);

struct SplitOptions {
  SetShare share;           // what goes to the second set
  bool stratified = false;  // of each label the same share; records without a label are one group
  uint64_t seed = 1;
  int threads = 1;
};

struct SplitResult {
  int64_t first = 0, second = 0;  // records
};

// Divides the records of a set among two, each in their order.
SplitResult SplitRecords(const std::string& source, const RecordOutput& first,
                         const RecordOutput& second, const SplitOptions& options);

}  // namespace trainer

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/storage/record_writer.h"

namespace trainer {

// Writes the records of a set, in their order, to another one. From database to database, keys and
// values are unchanged. Keys of records from a file begin with their number. `channels_last`: the
// records are (height, width, channels), and are written as (C, H, W). Returns the number of
// records. Errors: as RecordScan and OpenRecordWriter throw; kData for an image file whose channels
// cannot be moved.
int64_t ConvertRecords(const std::string& source, const WriteOptions& output, int threads,
                       bool channels_last = false);

// The size of a part of a set: a fraction, or a number of records.
struct SplitSize {
  double share = 0;  // 0 to 1; 0: `count` counts
  int64_t count = 0;

  bool empty() const { return share == 0 && count == 0; }
};

// Parses "10%", "0.1" or an integer number of records; "" means an empty part. Throws kUsage,
// naming `flag`, for anything else, and for a part that is the whole set.
SplitSize ParseSplit(std::string_view flag, const std::string& text);

// Draws a random part of the records, a function of labels and seed; true: the record is in it.
// `stratified`: the same fraction of each label, the rest by the largest remainders. Throws kUsage
// unless the number is below the number of records.
std::vector<bool> DrawSplit(std::span<const int32_t> labels, const SplitSize& share,
                            bool stratified, uint64_t seed);

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

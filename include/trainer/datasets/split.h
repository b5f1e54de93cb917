#pragma once
// Draws the records of a set that go into another one, such as a validation set.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

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

}  // namespace trainer

#pragma once
// Which records of a set go into another one: a validation set.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// A part of a set: a share, or a number of records.
struct SetShare {
  double share = 0;  // 0 to 1; 0: `count` counts
  int64_t count = 0;

  bool empty() const { return share == 0 && count == 0; }
};

// "10%", "0.1" or a whole number of records; "" is no part. Throws kUsage, naming `flag`, for
// anything else, and for a part that is everything.
SetShare ParseShare(std::string_view flag, const std::string& text);

// Draws that part of the records at random, a function of labels and seed; true: it is drawn.
// `stratified`: of each label the same share, the rest by the largest remainders. Throws kUsage for
// a number that is not below that of the records.
std::vector<bool> DrawShare(std::span<const int32_t> labels, const SetShare& share, bool stratified,
                            uint64_t seed);

}  // namespace trainer

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace trainer {

// The upper limits of buckets, ascending, and how many values each bucket has.
struct HistogramBuckets {
  std::vector<double> limits, counts;
};

// Counts how often values occur. The sign, the exponent and the first two bits of the mantissa give
// the bucket of a value: four buckets for each power of two, found without a comparison, so that
// counting weights does not slow a run down. Values that are not finite do not count.
class Histogram {
 public:
  // Adds values times `scale`.
  void Add(std::span<const float> values, float scale = 1);

  // Returns how many finite values were added.
  int64_t count() const;
  double min() const { return min_ > max_ ? 0 : min_; }
  double max() const { return min_ > max_ ? 0 : max_; }
  double sum() const { return sum_; }
  double sum_of_squares() const { return squares_; }
  // Returns the buckets from the first to the last that has a value. Buckets below 1/4096 of the
  // largest value are merged into one around zero. Without values, returns one empty bucket.
  HistogramBuckets Buckets() const;

 private:
  static constexpr int kShift = 21;  // bits of a float below those that are its bucket
  static constexpr size_t kHalf = size_t{1} << (31 - kShift);
  static constexpr size_t kFinite = size_t{0xff} << (23 - kShift);  // buckets of each sign
  // Neighbouring values go to different copies, so that none waits for the one before.
  static constexpr size_t kCopies = 4;

  // Returns the values in one bucket of counts_, over all copies.
  int64_t CountOf(size_t bucket) const;

  std::array<std::array<uint32_t, 2 * kHalf>, kCopies> counts_{};
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0, squares_ = 0;
};

}  // namespace trainer

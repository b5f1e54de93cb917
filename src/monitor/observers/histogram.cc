#include "histogram.h"

#include <algorithm>
#include <bit>

namespace trainer {
namespace {

constexpr uint32_t kExponent = 0x7f800000u;
constexpr size_t kLanes = 16;

// Sums, sums of squares, minima and maxima in kLanes lanes, which compilers turn into vector
// instructions.
struct Lanes {
  std::array<float, kLanes> sum{}, squares{}, low, high;
  std::array<float, kLanes> probe{};  // not 0 once a value was not finite

  Lanes() {
    low.fill(std::numeric_limits<float>::infinity());
    high.fill(-std::numeric_limits<float>::infinity());
  }
  void Add(size_t lane, float value) {
    sum[lane] += value;
    squares[lane] += value * value;
    low[lane] = value < low[lane] ? value : low[lane];
    high[lane] = value > high[lane] ? value : high[lane];
    probe[lane] += value - value;
  }
  // Returns whether all values were finite: x - x is 0 only for these.
  bool finite() const {
    return std::ranges::all_of(probe, [](float p) { return p == 0; });
  }
};

// Returns the sums of the values times `scale`.
Lanes AddUp(std::span<const float> values, float scale) {
  Lanes lanes;
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes.Add(lane, values[i + lane] * scale);
  }
  for (; i < values.size(); ++i) lanes.Add(0, values[i] * scale);
  return lanes;
}

bool IsFinite(float value) { return (std::bit_cast<uint32_t>(value) & kExponent) != kExponent; }

// Returns the sums of the finite values times `scale`. Few blocks have other values, so this may be
// slow.
Lanes AddUpFinite(std::span<const float> values, float scale) {
  std::vector<float> finite;
  for (const float value : values) {
    if (IsFinite(value * scale)) finite.push_back(value);
  }
  return AddUp(finite, scale);
}

}  // namespace

// Adds in blocks: float is exact enough for the sum of a few hundred values, the blocks are added
// in double.
void Histogram::Add(std::span<const float> values, float scale) {
  constexpr size_t kBlock = 64 * kLanes;
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const std::span<const float> block = values.subspan(at, std::min(kBlock, values.size() - at));
    Lanes lanes = AddUp(block, scale);
    if (!lanes.finite()) lanes = AddUpFinite(block, scale);
    for (size_t j = 0; j < block.size(); ++j) {
      ++counts_[j % kCopies][std::bit_cast<uint32_t>(block[j] * scale) >> kShift];
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sum_ += lanes.sum[lane];
      squares_ += lanes.squares[lane];
      min_ = std::min<double>(min_, lanes.low[lane]);
      max_ = std::max<double>(max_, lanes.high[lane]);
    }
  }
}

int64_t Histogram::count() const {
  int64_t count = 0;
  for (size_t bucket = 0; bucket < kFinite; ++bucket)
    count += CountOf(bucket) + CountOf(kHalf + bucket);
  return count;
}

int64_t Histogram::CountOf(size_t bucket) const {
  int64_t count = 0;
  for (const auto& copy : counts_) count += copy[bucket];
  return count;
}

// Goes through counts_ from the largest negative number to the largest positive one. In counts_,
// negative numbers follow the positive ones, with the smallest magnitude first.
HistogramBuckets Histogram::Buckets() const {
  constexpr size_t kSmall = size_t{12} << (23 - kShift);  // below the largest: twelve powers of two
  const auto edge = [](size_t bucket) {
    return static_cast<double>(
        std::bit_cast<float>(std::min(static_cast<uint32_t>(bucket) << kShift, kExponent - 1)));
  };
  size_t top = kFinite;
  while (top > 0 && CountOf(top - 1) + CountOf(kHalf + top - 1) == 0) --top;
  if (top == 0) return {{0}, {0}};
  const size_t least = top > kSmall ? top - kSmall : 0;
  HistogramBuckets all;
  const auto add = [&all](double limit, int64_t count) {
    all.limits.push_back(limit);
    all.counts.push_back(static_cast<double>(count));
  };
  for (size_t b = top; b-- > least;) add(b == 0 ? 0 : -edge(b), CountOf(kHalf + b));
  int64_t small = 0;
  for (size_t b = 0; b < least; ++b) small += CountOf(b) + CountOf(kHalf + b);
  if (least > 0) add(edge(least), small);
  for (size_t b = least; b < top; ++b) add(edge(b + 1), CountOf(b));
  // Empty buckets at the ends are removed, except for one that gives the first its lower limit.
  while (all.counts.back() == 0) {
    all.counts.pop_back();
    all.limits.pop_back();
  }
  const auto used = std::ranges::find_if(all.counts, [](double n) { return n > 0; });
  const auto empty = std::max<std::ptrdiff_t>(used - all.counts.begin() - 1, 0);
  all.counts.erase(all.counts.begin(), all.counts.begin() + empty);
  all.limits.erase(all.limits.begin(), all.limits.begin() + empty);
  return all;
}

}  // namespace trainer

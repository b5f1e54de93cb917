#include "histogram.h"

#include <algorithm>
#include <bit>

namespace trainer {
namespace {

constexpr uint32_t kExponent = 0x7f800000u;

bool IsFinite(uint32_t bits) { return (bits & kExponent) != kExponent; }

// What a block of values adds up to. A sum of a few hundred floats is exact enough, and compilers
// make vectors of it.
struct Sums {
  float sum = 0, squares = 0;
};

}  // namespace

void Histogram::Add(std::span<const float> values, float scale) {
  constexpr size_t kBlock = 256;
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const std::span<const float> block = values.subspan(at, std::min(kBlock, values.size() - at));
    Sums sums;
    float low = std::numeric_limits<float>::infinity(), high = -low;
    for (size_t i = 0; i < block.size(); ++i) {
      const float value = block[i] * scale;
      const auto bits = std::bit_cast<uint32_t>(value);
      if (!IsFinite(bits)) continue;
      ++counts_[i % kCopies][bits >> kShift];
      ++count_;
      sums.sum += value;
      sums.squares += value * value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    sum_ += sums.sum;
    squares_ += sums.squares;
    min_ = std::min<double>(min_, low);
    max_ = std::max<double>(max_, high);
  }
}

int64_t Histogram::CountOf(size_t bucket) const {
  int64_t count = 0;
  for (const auto& copy : counts_) count += copy[bucket];
  return count;
}

// Negative numbers stand behind the positive ones, with the smallest first.
HistogramBuckets Histogram::Buckets() const {
  HistogramBuckets all;
  const auto edge = [](size_t bucket) {
    return static_cast<double>(
        std::bit_cast<float>(std::min(static_cast<uint32_t>(bucket) << kShift, kExponent - 1)));
  };
  for (size_t b = kHalf; b-- > 0;) {
    all.limits.push_back(b == 0 ? 0 : -edge(b));
    all.counts.push_back(static_cast<double>(CountOf(kHalf + b)));
  }
  for (size_t b = 0; b < kHalf; ++b) {
    all.limits.push_back(edge(b + 1));
    all.counts.push_back(static_cast<double>(CountOf(b)));
  }
  const auto used = [](double n) { return n > 0; };
  const auto first = std::ranges::find_if(all.counts, used);
  if (first == all.counts.end()) return {{0}, {0}};
  const auto last = std::ranges::find_if(all.counts.rbegin(), all.counts.rend(), used).base();
  // One empty bucket before the first, which gives that one its lower limit.
  const auto from = std::max<std::ptrdiff_t>(first - all.counts.begin() - 1, 0);
  const auto to = last - all.counts.begin();
  return {{all.limits.begin() + from, all.limits.begin() + to},
          {all.counts.begin() + from, all.counts.begin() + to}};
}

}  // namespace trainer

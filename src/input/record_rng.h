#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "trainer/base/random/permutation.h"
#include "trainer/base/random/philox.h"

namespace trainer {

// Reads the Philox passes from `first_pass` on. Pass 0 is for a record's crop and mirroring.
class RecordRng {
 public:
  RecordRng(const PhiloxKey& key, uint64_t number, uint32_t first_pass)
      : key_(key), number_(number), first_pass_(first_pass) {}

  uint32_t Word() {
    if (used_ % 4 == 0) block_ = PhiloxBlock(key_, first_pass_ + used_ / 4, number_);
    return block_.x[used_++ % 4];
  }
  int64_t Below(int64_t n) { return UniformBelow(Word(), n); }
  double Within(double low, double high) { return low + (high - low) * UniformFloat(Word()); }
  // Uniform, neither 0 nor 1.
  double Unit() { return (static_cast<double>(Word()) + 0.5) * 0x1p-32; }
  // Box-Muller transform.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Unit()));
    return radius * std::cos(2 * std::numbers::pi * Unit());
  }

 private:
  PhiloxKey key_;
  uint64_t number_;
  uint32_t first_pass_, used_ = 0;
  Philox4 block_ = {};
};

}  // namespace trainer

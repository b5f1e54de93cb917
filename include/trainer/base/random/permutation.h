#pragma once
// Random orders that are a function of a key: nothing to save for a resume.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/base/random/philox.h"

namespace trainer {

// Returns a number uniform in [0, n) from 32 random bits, for n from 1 to 2^32; no number's
// probability is off by more than a share of n / 2^32.
template <class Int>
constexpr Int UniformBelow(uint32_t word, Int n) {
  return static_cast<Int>(uint64_t{word} * static_cast<uint64_t>(n) >> 32);
}

// Writes a random order of 0 .. count - 1 to `order`, each order as likely as the others: Fisher
// and Yates' exchanges from the last element down, element i by word `first_word` + i of the pass.
// count is below 2^32.
void Permute(const PhiloxKey& key, uint32_t pass, uint64_t first_word, size_t count,
             std::vector<uint32_t>* order);

// Returns element `at` of a random order of 0 .. count - 1 without computing the other elements, so
// it takes no memory. Each (key, pass, domain) gives another order. Needs at < count <= 2^62 and
// domain < 2^28.
uint64_t PermutedAt(const PhiloxKey& key, uint32_t pass, uint32_t domain, uint64_t count,
                    uint64_t at);

}  // namespace trainer

#include "trainer/base/random/permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace trainer {

void Permute(const PhiloxKey& key, uint32_t pass, uint64_t first_word, size_t count,
             std::vector<uint32_t>* order) {
  order->resize(count);
  std::iota(order->begin(), order->end(), 0u);
  for (size_t i = count; i-- > 1;) {
    std::swap((*order)[i], (*order)[UniformBelow(PhiloxWord(key, pass, first_word + i), i + 1)]);
  }
}

// A Feistel network permutes the pairs (a, b), 0 <= a < high, 0 <= b < low. The pair a * low + b
// stands for a place, and high * low is at least `count`. If the result is `count` or more, the
// network is applied to it again (cycle walking: Black and Rogaway, "Ciphers with arbitrary finite
// domains", CT-RSA 2002). Fewer than sqrt(count) + 1 pairs are out of range.
uint64_t PermutedAt(const PhiloxKey& key, uint32_t pass, uint32_t domain, uint64_t count,
                    uint64_t at) {
  constexpr uint64_t kRounds = 4;  // of two halves; four halves are the least that looks random
  auto high = static_cast<uint64_t>(std::sqrt(static_cast<double>(count)));
  while (high * high < count) ++high;
  const uint64_t low = (count + high - 1) / high;
  const auto draw = [&](uint64_t round, uint64_t half, uint64_t n) {
    const uint64_t block = uint64_t{domain} << 36 | round << 32 | half;
    return UniformBelow(PhiloxBlock(key, pass, block).x[0], n);
  };
  do {
    uint64_t a = at / low, b = at % low;
    for (uint64_t round = 0; round < kRounds; ++round) {
      a = (a + draw(2 * round, b, high)) % high;
      b = (b + draw(2 * round + 1, a, low)) % low;
    }
    at = a * low + b;
  } while (at >= count);
  return at;
}

}  // namespace trainer

#include "trainer/base/random/permutation.h"

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

}  // namespace trainer

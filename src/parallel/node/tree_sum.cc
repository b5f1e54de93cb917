#include "node/tree_sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "trainer/base/each_cpu.h"

namespace trainer {
namespace {

// A block stays in the L1 cache while several terms are added to it.
constexpr size_t kBlock = 1024;  // floats

// Compiled for each kind of CPU. All give the same bits, because there are only additions.
#define TRAINER_ADDS TRAINER_FOR_EACH_CPU("avx512f", "avx2")

// Sets to[i] = a[i] + b[i]. `to` may be `a` or `b`.
TRAINER_ADDS
void AddPair(const float* a, const float* b, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

// Adds the terms of two ranks in one pass, without an intermediate block.
TRAINER_ADDS
void AddInBoth(float* __restrict a, float* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// Writes the sum of numbers `begin` to `begin + size` of two or more terms to `to`, which must not
// be one of the terms.
void AddTree(std::span<const float* const> terms, size_t begin, size_t size, float* to) {
  const size_t half = std::bit_ceil(terms.size()) / 2;
  if (half == 1) return AddPair(terms[0] + begin, terms[1] + begin, to, size);
  AddTree(terms.first(half), begin, size, to);
  const std::span<const float* const> rest = terms.subspan(half);
  if (rest.size() == 1) return AddPair(to, rest[0] + begin, to, size);
  float block[kBlock];
  AddTree(rest, begin, size, block);
  AddPair(to, block, to, size);
}

}  // namespace

void TreeSum(std::span<const float* const> terms, float* to, size_t count) {
  if (terms.size() == 1) {
    if (to != terms[0]) std::memcpy(to, terms[0], count * sizeof(float));
    return;
  }
  float block[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    AddTree(terms, begin, size, block);
    std::memcpy(to + begin, block, size * sizeof(float));
  }
}

void TreeSumInPlace(std::span<float* const> terms, size_t begin, size_t end) {
  if (terms.size() == 2) return AddInBoth(terms[0] + begin, terms[1] + begin, end - begin);
  float block[kBlock];
  for (; begin < end && terms.size() > 1; begin += kBlock) {
    const size_t size = std::min(kBlock, end - begin);
    AddTree(terms, begin, size, block);
    for (float* term : terms) std::memcpy(term + begin, block, size * sizeof(float));
  }
}

}  // namespace trainer

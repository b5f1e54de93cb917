#pragma once
// Sums over ranks, always in the order of one binary tree. The results therefore repeat bit for
// bit. If each rank gives the tree sum of 2^k virtual ranks, the sum over the ranks has the same
// bits as the tree sum over all virtual ranks.

#include <cstddef>
#include <span>

namespace trainer {

// Sets to[i] = terms[0][i] + terms[1][i] + ...: the tree sum of the first 2^k terms plus the tree
// sum of the rest, where 2^k is the largest power of two below the number of terms. Neighbours are
// added first: ((t0 + t1) + (t2 + t3)) + (t4 + t5). `to` may be one of the terms.
void TreeSum(std::span<const float* const> terms, float* to, size_t count);

// Adds numbers `begin` to `end` in place: afterwards each terms[k][i] is the sum.
void TreeSumInPlace(std::span<float* const> terms, size_t begin, size_t end);

}  // namespace trainer

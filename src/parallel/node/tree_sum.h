#pragma once
// Sums over ranks, always in the order of one binary tree. They therefore repeat bit for bit, and
// the sum over ranks that each give the sum of 2^k virtual ranks equals the sum over all virtual
// ranks.

#include <cstddef>
#include <span>

namespace trainer {

// to[i] = parts[0][i] + parts[1][i] + ...: the sum of the first 2^k parts, as many as leave some,
// plus that of the rest; each of the two likewise. Neighbours are added first:
// ((p0 + p1) + (p2 + p3)) + (p4 + p5). `to` may be one of the parts.
void TreeSum(std::span<const float* const> terms, float* to, size_t count);

// The same for numbers `begin` to `end`, in place: afterwards each terms[k][i] is the sum.
void TreeSumInPlace(std::span<float* const> terms, size_t begin, size_t end);

}  // namespace trainer

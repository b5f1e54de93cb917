#pragma once
// Sums over ranks, always as one binary tree, so that they repeat bit for bit and so that the sums
// of ranks which each bring the sum of 2^k neighbours are those of all the neighbours.

#include <cstddef>
#include <span>

namespace trainer {

// to[i] = parts[0][i] + parts[1][i] + ...: the sum of the first 2^k parts, as many as leave some,
// plus that of the rest; each of the two likewise. Neighbours are added first:
// ((p0 + p1) + (p2 + p3)) + (p4 + p5). `to` may be one of the parts.
void AddParts(std::span<const float* const> parts, float* to, size_t count);

// The same for numbers `begin` to `end`, with the sum in place of every part: parts[k][i] is the
// sum afterwards.
void AddInEveryPart(std::span<float* const> parts, size_t begin, size_t end);

}  // namespace trainer

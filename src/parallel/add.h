#pragma once
// Sums over ranks, always in the order of the ranks, so that they repeat bit for bit.

#include <cstddef>
#include <span>

namespace trainer {

// to[i] = parts[0][i] + parts[1][i] + ..., from left to right. `to` may be one of the parts.
void AddParts(std::span<const float* const> parts, float* to, size_t count);

// The same for numbers `begin` to `end`, with the sum in place of every part: parts[k][i] is the
// sum afterwards.
void AddInEveryPart(std::span<float* const> parts, size_t begin, size_t end);

}  // namespace trainer

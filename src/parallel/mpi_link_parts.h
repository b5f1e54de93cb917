#pragma once
// What the sums of an MpiLink in 32 bits and in 16 share.

#include <cstddef>

namespace trainer {

inline constexpr int kPieceTag = 1, kSumTag = 2;
// Floats at a time, which bounds the memory for pieces.
inline constexpr size_t kPart = 1 << 19;

}  // namespace trainer

#pragma once
// The messages of the sums of an InterNodeAllReduce, in 32 bits and in 16.

namespace trainer {

inline constexpr int kPieceTag = 1, kSumTag = 2;

}  // namespace trainer

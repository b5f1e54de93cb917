#pragma once
// The MPI tags of InterNodeAllReduce, with and without compression.

namespace trainer {

inline constexpr int kPieceTag = 1, kSumTag = 2;

}  // namespace trainer

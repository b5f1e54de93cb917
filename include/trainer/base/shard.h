#pragma once

namespace trainer {

// The part of a data set that one replica reads: records k with k % count == rank.
struct Shard {
  int rank = 0;
  int count = 1;
};

}  // namespace trainer

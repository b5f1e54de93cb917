#pragma once

#include <cstdint>

namespace trainer {

// The batches that one rank takes if ranks divide whole batches, as in tests: of each `period`
// batches, the numbers rank, rank + count, ... A round is the next `count` of them, or the rest of
// the period. Each period begins `skip_before` records after the end of the previous one and ends
// `skip_after` records after its last batch.
struct TestShard {
  int rank = 0, count = 1;
  int64_t period = 1;
  int64_t skip_before = 0, skip_after = 0;
};

}  // namespace trainer

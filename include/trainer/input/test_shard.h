#pragma once

#include <cstdint>

namespace trainer {

// Selects the batches of one rank where ranks divide whole batches, as in tests: in each period of
// `period` batches, the rank takes the batches rank, rank + count, ... A round is the next `count`
// batches, or the rest of the period. Each period begins `skip_before` records after the end of the
// previous one and ends `skip_after` records after its last batch.
struct TestShard {
  int rank = 0, count = 1;
  int64_t period = 1;
  int64_t skip_before = 0, skip_after = 0;
};

}  // namespace trainer

#pragma once

#include <cstdint>

namespace trainer {

// Which batches of a sequence a replica takes where whole batches are shared, as in tests: of each
// `period` batches number rank, rank + count, ... . A round is the next `count` of them, or what is
// left of the period. Each period begins `skip_before` records after the end of the one before, and
// ends `skip_after` records after its last batch.
struct BatchShare {
  int rank = 0, count = 1;
  int64_t period = 1;
  int64_t skip_before = 0, skip_after = 0;
};

}  // namespace trainer

#pragma once

#include <cstdint>

namespace trainer {

// Which batches of a sequence a replica takes where whole batches are shared, as in tests: of each
// `period` batches number rank, rank + count, ... . A round is the next `count` of them, or what is
// left of the period.
struct BatchShare {
  int rank = 0, count = 1;
  int64_t period = 1;
};

}  // namespace trainer

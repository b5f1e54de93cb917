#pragma once
// How often training waits for batches that are read ahead.

#include <cstdint>

namespace trainer {

// How often the consumer found no batch ready, and for how long it then waited. The first batch
// after the start is apart: there the queue is only filling.
struct WaitCounters {
  uint64_t waits = 0;
  double wait_seconds = 0;
  double first_wait_seconds = 0;
};

// Whether the n-th wait, counted from 1, is worth a line in the log: the first of each thousand.
constexpr bool LogsWait(uint64_t n) { return n % 1000 == 1; }

}  // namespace trainer

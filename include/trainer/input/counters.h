#pragma once
// Counts how often and how long training waits for batches.

#include <cstdint>

namespace trainer {

// Time that the workers spent on batches, in seconds: reading records, decoding them, and
// transforming them to the values of a batch.
struct WorkSeconds {
  double read = 0, decode = 0, transform = 0;
};

// How often the consumer found no batch ready, and how long it then waited. The wait for the first
// batch is counted separately, because the queue is still filling then.
struct InputCounters {
  uint64_t waits = 0;
  double wait_seconds = 0;
  double first_wait_seconds = 0;
  WorkSeconds work;  // of all workers, for the batches that were measured
  int threads = 1;   // workers
};

// Whether the n-th wait, counted from 1, is logged: the first of each thousand.
constexpr bool LogsWait(uint64_t n) { return n % 1000 == 1; }

}  // namespace trainer

#pragma once
// How often training waits for batches that are read ahead.

#include <cstdint>

namespace trainer {

// Time that threads spent on batches: reading records, decoding them, and making numbers of them.
struct StageSeconds {
  double read = 0, decode = 0, augment = 0;
};

// How often the consumer found no batch ready, and for how long it then waited. The first batch
// after the start is apart: there the queue is only filling.
struct WaitCounters {
  uint64_t waits = 0;
  double wait_seconds = 0;
  double first_wait_seconds = 0;
  StageSeconds stages;  // of all threads, from the batches that were measured
  int threads = 1;      // that decode
};

// Whether the n-th wait, counted from 1, is worth a line in the log: the first of each thousand.
constexpr bool LogsWait(uint64_t n) { return n % 1000 == 1; }

}  // namespace trainer

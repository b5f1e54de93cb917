#pragma once

#include <cstdint>

namespace trainer {

// Seconds that the workers spent on reading records, decoding and transforming them.
struct WorkSeconds {
  double read = 0, decode = 0, transform = 0;
  void Add(const WorkSeconds& other) {
    read += other.read;
    decode += other.decode;
    transform += other.transform;
  }
};

// How often and how long the consumer waited. The first batch counts apart: the queue still fills.
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

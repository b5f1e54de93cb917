#pragma once
// Detects other programs that share the cores: a thread is then ready to run but has no core.

#include <cstdint>

namespace trainer {

// Returns whether the cores count as shared at time `now` of MonotonicNs.
bool CoresAreShared(int64_t now);
// Makes the cores count as shared for a fraction of a second from `now` on.
void MarkCoresShared(int64_t now);

// Returns for how many nanoseconds the calling thread has been ready to run without getting a core
// since it began; less than 0 if the system does not report it.
int64_t ReadCoreDelay();

// A measurement of the calling thread.
struct CoreDelay {
  int64_t time = 0;     // MonotonicNs
  double seconds = -1;  // ReadCoreDelay() in seconds; -1: there was no measurement
  // The thread had no core in so much of the last interval that another program may use the cores.
  bool is_high = false;
};
// Measures at most once every few milliseconds per thread; in between, returns no measurement.
CoreDelay MeasureCoreDelay();

}  // namespace trainer

#pragma once
// How long a waiting thread spins before it sleeps. Used by the threads of a team and by ranks of
// one node.

#include <chrono>
#include <cstdint>

namespace trainer {

// Returns nanoseconds of the clock that all processes of a computer share.
inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns how long a thread should spin before it sleeps, in nanoseconds. The time is long while
// this program has the cores to itself, and short if one of its threads had to wait for a core
// recently.
int64_t SpinTime();

// Called by a thread that waits without a team. Every few milliseconds it reads how long the thread
// was ready to run but had no core; SpinTime depends on that.
void NoteWait();

// Returns for how many seconds the calling thread has been ready to run without getting a core
// since it began; less than 0 if the system does not report it.
double SecondsWithoutCore();

}  // namespace trainer

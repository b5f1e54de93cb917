#pragma once
// How long a thread spins that waits for others of its own kind: those of a team, or of the
// processes that train with this one.

#include <chrono>
#include <cstdint>

namespace trainer {

// Of the clock that all processes of a machine share.
inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// In nanoseconds: long while the cores are this program's own, short when a thread of it had to
// wait for a core lately. Then it should sleep.
int64_t SpinTime();

// For a thread that waits without a team: every few milliseconds it reads how long the thread was
// ready to run and had no core, which SpinTime goes by.
void NoteWait();

}  // namespace trainer

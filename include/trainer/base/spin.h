#pragma once
// How long a thread spins that waits for others of its own kind: those of a team, or of the
// processes that train with this one.

#include <cstdint>

namespace trainer {

// In nanoseconds: long while the cores are this program's own, short when a thread of it had to
// wait for a core lately. Then it should sleep.
int64_t SpinTime();

// For a thread that waits without a team: every few milliseconds it reads how long the thread was
// ready to run and had no core, which SpinTime goes by.
void NoteWait();

}  // namespace trainer

#pragma once
// Finds out whether another process of this machine still runs.

#include <sys/types.h>

#include <string>

namespace trainer {

// Returns whether the process does not exist, or has ended and only waits until its parent reaps
// it. In containers the first process often never does that.
bool ProcessHasEnded(pid_t pid);

// Returns when the process started, in ticks since the machine started, which distinguishes
// processes that had the same number. Returns "" if that cannot be read.
std::string ProcessStart(pid_t pid);

}  // namespace trainer

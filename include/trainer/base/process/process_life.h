#pragma once
// Whether another process of this machine still runs.

#include <sys/types.h>

#include <string>

namespace trainer {

// Whether there is no such process, or it has ended and only waits to be reaped by its parent: in
// containers the first process often never does that.
bool ProcessHasEnded(pid_t pid);

// When it started, in ticks since the machine did, which tells processes of one number apart; ""
// where that cannot be read.
std::string ProcessStart(pid_t pid);

}  // namespace trainer

#pragma once
// When a run must end: by --max_wall, or by the time limit of its batch job.

#include <chrono>
#include <optional>
#include <string>

#include "trainer/run/jobs/scheduler.h"

namespace trainer {

// Throws kUsage if `max_wall` is neither a time, nor "none", nor "".
void RequireWallTime(const std::string& max_wall);

// Returns when the run must have ended, and logs it with `exit_code`, with which the run then ends.
// `max_wall` counts from the start of the process; "" asks the batch system, "none" means no limit.
// No value: the run has no limit.
std::optional<std::chrono::steady_clock::time_point> RunDeadline(
    const std::string& max_wall, int exit_code, const SchedulerAccess& access = {});

}  // namespace trainer

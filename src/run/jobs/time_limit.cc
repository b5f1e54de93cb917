#include "trainer/run/jobs/time_limit.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/duration.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// The environment may name any end of a job, but clocks count nanoseconds.
constexpr seconds kLongest = std::chrono::hours(24 * 36500);

// Throws kUsage, with examples, unless `text` is a time of at least a second.
seconds ParseLimit(const std::string& text) {
  const std::optional<seconds> time = ParseWallTime(text);
  if (!time || time->count() < 1) {
    throw Error(ErrorCode::kUsage,
                Join("--max_wall=", EscapeControl(text),
                     ": not a time; write 4:00:00, 1-12:00:00 (a day and a half), 90 (minutes), "
                     "90m, 1h30m or 45s; none means no limit"));
  }
  return *time;
}

}  // namespace

void RequireWallTime(const std::string& max_wall) {
  if (!max_wall.empty() && max_wall != "none") ParseLimit(max_wall);
}

std::optional<steady_clock::time_point> RunDeadline(const std::string& max_wall, int exit_code,
                                                    const SchedulerAccess& access) {
  if (max_wall == "none") return std::nullopt;
  const std::string then =
      Join("; the run saves a snapshot and exits with code ", exit_code, " before that");
  if (!max_wall.empty()) {
    const seconds limit = ParseLimit(max_wall);
    LOG(INFO) << "Time limit: " << WallTimeText(limit)
              << " from the start of this process (--max_wall)" << then;
    return LoadTime() + limit;
  }
  const SchedulerJob job = CurrentJob(access);
  if (job.system == BatchSystem::kNone) return std::nullopt;
  const TimeLeft left = QueryTimeLeft(job, access);
  if (left.time) {
    const seconds time = std::min(*left.time, kLongest);
    LOG(INFO) << "Time limit: " << WallTimeText(time) << " from now, the time left for "
              << job.Name() << " (" << left.source << ")" << then
              << "; --max_wall=none turns this off";
    return access.now() + time;
  }
  if (left.problem.empty()) {
    LOG(INFO) << "Time limit: none for " << job.Name() << " (" << left.source << ")";
  } else {
    LOG(WARNING) << EscapeControl(
        Join("The time left for ", job.Name(), " is unknown: ", left.problem,
             ". Give --max_wall, or make the queue send ", "SIGUSR1 before the job ends"));
  }
  return std::nullopt;
}

}  // namespace trainer

#pragma once
// The batch job that this process runs in: how much time it has left, and how to queue it again.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/process/command.h"
#include "trainer/base/process/own_process.h"

namespace trainer {

// The batch systems that a running program can talk to.
enum class BatchSystem { kNone, kSlurm, kPbs };

// How to reach the batch system. Tests replace the members.
struct SchedulerAccess {
  // Returns the value of an environment variable, "" if it is not set.
  std::function<std::string(const char*)> variable = EnvironmentVariable;
  std::function<CommandResult(const std::vector<std::string>& words,
                              std::chrono::milliseconds limit)>
      run = RunCommand;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// A batch job by its system and its id.
struct SchedulerJob {
  BatchSystem system = BatchSystem::kNone;
  std::string id;

  // Returns "Slurm job 123" or "PBS job 123".
  std::string Name() const;
};

// Returns the job that the environment names; kNone outside of a batch job. The id of a task of a
// Slurm array is "<array>_<task>".
SchedulerJob CurrentJob(const SchedulerAccess& access = {});

// The answer to a question for the time that a job has left.
struct TimeLeft {
  std::optional<std::chrono::seconds> time;  // no value: no limit, or unknown
  std::string source;                        // where it comes from: "squeue"
  std::string problem;                       // why it is unknown, or ""
};

// Returns the time that the job has left. For Slurm it comes from SLURM_JOB_END_TIME, else from
// squeue; for PBS from qstat, else from PBS_WALLTIME. Runs a command once, for at most ten seconds.
TimeLeft QueryTimeLeft(const SchedulerJob& job, const SchedulerAccess& access = {});

// Parses the output of squeue's %L, such as "1-02:03:04" or "UNLIMITED".
TimeLeft ReadSqueue(const std::string& out);
// Parses the output of `qstat -f`, from PBS or Torque.
TimeLeft ReadQstat(const std::string& out);

// Queues the Slurm job of this process again, for a run that stopped early with its snapshot saved,
// and logs the result. Does nothing to a job that is being cancelled, or that was queued again
// already. Outside of Slurm it only warns.
void RequeueJob(const SchedulerAccess& access = {});

}  // namespace trainer

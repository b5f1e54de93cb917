#pragma once
// The batch job that this process runs in, if any: how much time it has left, and queueing it
// again.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/cli/flag_set.h"

namespace trainer {

enum class BatchSystem { kNone, kSlurm, kPbs };

struct BatchJob {
  BatchSystem system = BatchSystem::kNone;
  std::string id;

  // "Slurm job 123"
  std::string Name() const;
};

// What the environment says. `get` gives the value of a variable, or null.
BatchJob ReadBatchJob(const std::function<const char*(const char*)>& get);
BatchJob ReadBatchJob();

// How much of a job's time is left.
struct TimeLeft {
  std::optional<std::chrono::seconds> time;  // nothing: no limit, or nobody knows
  std::string source;                        // who says so: "squeue"
  std::string problem;                       // why it is not known, or ""
};

// What the queue says, now: of Slurm SLURM_JOB_END_TIME, else squeue; of PBS qstat, else
// PBS_WALLTIME. A command of the queue is run once, and given ten seconds.
TimeLeft AskQueue(const BatchJob& job);

// What commands of the queue print: squeue's %L ("1-02:03:04", "UNLIMITED"), qstat -f.
TimeLeft ReadSqueue(const std::string& out);
TimeLeft ReadQstat(const std::string& out);

// --max_wall and --requeue.
Flag MaxWallFlag();
Flag RequeueFlag();

// Throws kUsage for a --max_wall that is no time.
void CheckMaxWall(const Flags& flags);
// When the run must be over, by --max_wall, counted from the start of the process, or by the queue;
// says so in the log. Nothing for a run without limit.
std::optional<std::chrono::steady_clock::time_point> EndOfRun(const Flags& flags);

// For a run that stopped early with everything saved: queues its Slurm job again, and says in the
// log what came of it. A job that is being cancelled, or queued again by somebody else, is left
// alone.
void RequeueJob();

}  // namespace trainer

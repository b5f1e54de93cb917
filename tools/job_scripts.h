#pragma once
// Batch scripts that run a training until it is finished.

#include <string>
#include <vector>

namespace trainer {

enum class JobSystem { kSlurm, kPbs, kMpirun };

// The start of the last line in the log of a sweep's run; the exit code follows.
inline constexpr char kExitLine[] = "The run ended with exit code ";

// One task of an array. Both members are words of the shell (ShellWord).
struct ArrayRun {
  std::string folder;   // where the task keeps its log
  std::string changes;  // flags of `train` that only this task gets
};

// What a script asks for. Texts that users chose are words of the shell (ShellWord).
struct JobRequest {
  JobSystem system = JobSystem::kSlurm;
  std::string command;  // the command line that prints this script
  std::string solver;   // path
  std::string name;     // of the job
  std::string time;     // limit of each slot, such as "4:00:00"
  std::string snapshot_prefix;
  int nodes = 1, ranks_per_node = 1;
  int cores = 1;                     // per rank
  int memory_gib = 1;                // per node
  int warning_seconds = 60;          // from SIGUSR1 to the end of the slot, for the last snapshot
  bool mpirun = false;               // Slurm starts the ranks by mpirun instead of srun
  int seeds = 0;                     // > 0: an array of as many runs, with the seeds 1, 2, ...
  std::string partition;             // of Slurm, or "" for the usual one
  bool preemptable = false;          // takes snapshots by the clock
  bool gpu = false;                  // each rank computes on its own GPU
  std::string container;             // an image of Apptainer, or ""
  std::vector<ArrayRun> runs;        // not empty: an array with one task for each
  std::vector<std::string> changes;  // more flags of `train`

  int ranks() const { return nodes * ranks_per_node; }
};

// Fills in the template of the system, scripts/jobs/<system>.sh.in.
std::string JobScript(const JobRequest& request);

}  // namespace trainer

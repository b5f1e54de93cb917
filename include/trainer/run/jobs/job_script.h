#pragma once
// Batch scripts that run a training until it is finished.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

enum class JobSystem { kSlurm, kPbs, kMoab, kLsf, kSqsub, kMpirun };

// The start of the last line in the log of a sweep's run; the exit code follows.
inline constexpr char kExitLine[] = "The run ended with exit code ";

// One task of an array. Both members are words of the shell (ShellQuote).
struct ArrayTask {
  std::string folder;   // where the task keeps its log
  std::string changes;  // flags of `train` that only this task gets
};

// What a script asks for. Texts that users chose are words of the shell (ShellQuote).
struct JobSpec {
  JobSystem system = JobSystem::kSlurm;
  std::string command;                  // the command line that prints this script
  std::string solver;                   // path
  std::string name;                     // of the job
  std::chrono::seconds time{4 * 3600};  // limit of each slot
  std::string snapshot_prefix;
  int nodes = 1, ranks_per_node = 1;
  int cores = 1;             // per rank
  int node_cores = 0;        // of the largest node of the queue; 0: not known
  int memory_gib = 1;        // per node
  int warning_seconds = 60;  // from SIGUSR1 to the end of the slot, for the last snapshot
  bool mpirun = false;       // Slurm starts the ranks by mpirun instead of srun
  int seeds = 0;             // > 0: an array of as many runs, with the seeds 1, 2, ...
  int array_limit = 0;       // most tasks of an array that run at once; 0: all
  bool global_batch = true;  // several ranks share the batch of one
  std::string partition;     // or queue; "" for the usual one
  std::string account, qos, mail, constraint;  // or ""
  std::string output;                          // where the queue writes the log, or ""
  std::string run;                             // the folder of --run, or ""
  std::vector<std::string> modules;            // for "module load"
  std::vector<std::string> lines;              // more lines of the script, as they are
  bool preemptable = false;                    // takes snapshots by the clock
  bool gpu = false;                            // each rank computes on its own GPU
  std::string container;                       // an image of Apptainer, or ""
  std::vector<ArrayTask> runs;                 // not empty: an array with one task for each
  std::vector<std::string> changes;            // more flags of `train`

  int ranks() const { return nodes * ranks_per_node; }
};

// Fills in the template of the system, scripts/jobs/<system>.sh.in. Moab has that of PBS.
std::string JobScript(const JobSpec& request);

}  // namespace trainer

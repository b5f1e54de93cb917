#pragma once
// Batch scripts that run a training until it is finished.

#include <string>
#include <vector>

namespace trainer {

enum class JobSystem { kSlurm, kPbs, kMpirun };

// The last line of a log of a sweep's run, before the exit code.
inline constexpr char kExitLine[] = "The run ended with exit code ";

// One task of an array.
struct ArrayRun {
  std::string folder, changes;  // of its log; more flags of the training; as words of the shell
};

struct JobRequest {
  JobSystem system = JobSystem::kSlurm;
  std::string command;          // that prints this script
  std::string solver;           // as the user names it
  std::string name;             // of the job
  std::string time;             // "4:00:00"
  std::string snapshot_prefix;  // of the solver
  int nodes = 1, ranks_per_node = 1, cores = 1;
  int memory_gib = 1;        // of a node
  int warning_seconds = 60;  // before the end, for the last snapshot
  bool mpirun = false;       // starts ranks on several nodes; else srun
  int seeds = 0;             // an array of so many runs with seeds of their own; 0: one run
  std::string partition;     // or ""
  bool preemptable = false, gpu = false;
  std::string container;             // an image of Apptainer, or ""
  std::vector<ArrayRun> runs;        // an array of these, which keep logs of their own; or none
  std::vector<std::string> changes;  // more flags of the training, as words of the shell

  int ranks() const { return nodes * ranks_per_node; }
};

// The script, ready to be submitted or, of kMpirun, to be run.
std::string JobScript(const JobRequest& request);

}  // namespace trainer

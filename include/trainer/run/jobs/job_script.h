#pragma once
// Batch scripts that train until the run is finished.

#include <chrono>
#include <string>
#include <vector>

namespace trainer {

// The batch systems for which scripts can be written. kMpirun: no batch system, only mpirun.
enum class JobSystem { kSlurm, kPbs, kMoab, kLsf, kSqsub, kMpirun };

// Starts the last line in the log of a trial of a sweep. The exit code follows.
inline constexpr char kExitLine[] = "The run ended with exit code ";

// One task of a job array.
struct ArrayTask {
  std::string folder;                    // of the log
  std::vector<std::string> assignments;  // values of --set that only this task gets
  std::string batch = "";                // value of --batch, or ""
};

// The resources that a batch script requests, and the command that it runs. Texts are as the user
// gave them.
struct JobSpec {
  JobSystem system = JobSystem::kSlurm;
  std::vector<std::string> command;     // the words of the command that prints this script
  std::string solver;                   // file
  std::string name;                     // of the job
  std::chrono::seconds time{4 * 3600};  // limit of each job
  std::string snapshot_prefix;
  int nodes = 1, ranks_per_node = 1;
  int cores = 1;             // per rank
  int node_cores = 0;        // of the largest node of the queue; 0: unknown
  int memory_gib = 1;        // per node
  int warning_seconds = 60;  // from SIGUSR1 to the time limit, for the last snapshot
  bool mpirun = false;       // Slurm starts the ranks by mpirun instead of srun
  int seeds = 0;             // > 0: a job array of as many runs, with the seeds 1, 2, ...
  int array_limit = 0;       // maximal number of tasks that run at once; 0: no limit
  bool global_batch = true;  // several ranks divide the batch of one
  std::string partition;     // or queue; "": the default one
  std::string account, qos, mail, constraint;  // or ""
  std::string output;                          // file to which the queue writes the log, or ""
  std::string run;                             // folder of --run, or ""
  std::vector<std::string> modules;            // for "module load"
  std::vector<std::string> lines;              // more lines of the script
  bool preemptable = false;                    // saves a snapshot every 15 minutes
  bool gpu = false;                            // each rank computes on its own GPU
  std::string container;                       // an image of Apptainer, or ""
  std::vector<ArrayTask> tasks;                // not empty: a job array with one task for each
  int workers = 0;                             // > 0: a job array of so many tasks, which run
  std::vector<std::string> worker;             // these words of a command in place of `train`
  std::vector<std::string> assignments;        // values of --set
  std::vector<std::string> train_flags;        // more flags of `train`

  int ranks() const { return nodes * ranks_per_node; }
};

// Sets `gpu` and, if `ids` lists several GPUs, `ranks_per_node`. `ids` is the value of --gpu: "",
// "0", "all" or "0,1,2". Throws kUsage for any other list, and if `ranks_per_node` is already set
// to a number other than 1 and the number of GPUs.
void SetGpus(const std::string& ids, JobSpec* job);

// Fills in the template of the system, scripts/jobs/<system>.sh.in. Moab uses the template of PBS.
// Quotes the texts of `job` for the shell, except for `job.lines`. Throws kUsage if one has control
// characters.
std::string JobScript(const JobSpec& job);

}  // namespace trainer

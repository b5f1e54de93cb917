#pragma once
// Finds how many threads this process may use: the number that the batch system, the container and
// the user granted, not the number that the machine has.

#include <string>
#include <string_view>

namespace trainer {

// Returns min(wish, CPUs of the affinity mask, CPU quota of the control group), at least 1. The
// wish is OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else the whole mask. The first call reads
// them; later calls repeat its answer. Any thread may call.
int AvailableThreads();

// States that `ranks` processes share the CPUs of this one's mask, and `quota_ranks` processes the
// CPU quota of its control group; each gets an equal part. Call it before the first call of
// AvailableThreads.
void ShareThreads(int ranks, int quota_ranks);

// Returns one line for the log, e.g. "2 threads (OMP_NUM_THREADS=8, affinity mask of 2 CPUs)".
std::string DescribeThreads();

// The values that AvailableThreads reads. 0 means that the source sets none.
struct ThreadFacts {
  int mask = 1;         // CPUs this process may run on
  int quota = 0;        // CPUs' worth of time that the control group allows, rounded up
  int omp = 0;          // OMP_NUM_THREADS
  int slurm = 0;        // SLURM_CPUS_PER_TASK
  int ranks = 1;        // processes that share the mask
  int quota_ranks = 1;  // processes that share the quota
};

// Reads the mask, the quota and the environment. `ranks` and `quota_ranks` stay 1.
ThreadFacts ReadThreadFacts();
// Returns what AvailableThreads returns for these facts.
int ChooseThreads(const ThreadFacts& facts);
// Returns the line of DescribeThreads() for these facts.
std::string DescribeThreads(const ThreadFacts& facts);

// Returns the first number of an environment value ("4" or OpenMP's list "4,2"); 0 if it is not a
// positive whole number. Null is allowed.
int ParseThreadCount(const char* value);

// Returns quota / period rounded up; 0 for no limit, i.e. for a quota or period below 1.
int QuotaCpus(long long quota_us, long long period_us);

// Returns the CPUs from the content of a cgroup v2 cpu.max ("150000 100000" is 2, "max 100000" is
// 0).
int ParseCpuMax(std::string_view content);

// Returns the smallest limit on the way from this process's control group up to the root, 0 for
// none. `proc_cgroup` is the content of /proc/self/cgroup, `root` the mount point (/sys/fs/cgroup).
// Reads v2 (cpu.max; also under <root>/unified) and v1 (cpu.cfs_quota_us under <root>/cpu or
// <root>/cpu,cpuacct).
int CgroupCpus(const std::string& root, std::string_view proc_cgroup);

}  // namespace trainer

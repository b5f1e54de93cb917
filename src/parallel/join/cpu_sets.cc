#include "join/cpu_sets.h"

#include <sched.h>

#include <bit>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int kCores = 16 * 64;

// Returns whether a set contains a core.
bool HasCore(const CoreSet& cores, int core) {
  return (cores[static_cast<size_t>(core / 64)] >> (core % 64) & 1) != 0;
}

// Adds a core to a set.
void AddCore(CoreSet* cores, int core) {
  (*cores)[static_cast<size_t>(core / 64)] |= uint64_t{1} << (core % 64);
}

// Returns whether the sets have a common core.
bool HaveCommonCore(const CoreSet& a, const CoreSet& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] & b[i]) != 0) return true;
  }
  return false;
}

// Returns the number of cores in a set.
int CountCores(const CoreSet& cores) {
  int count = 0;
  for (const uint64_t word : cores) count += std::popcount(word);
  return count;
}

}  // namespace

CoreSet OwnCores() {
  cpu_set_t mask;
  CoreSet cores = {};
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < kCores; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &mask)) AddCore(&cores, core);
  }
  return cores;
}

void RunOn(const CoreSet& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (int core = 0; core < kCores; ++core) {
    if (HasCore(cores, core)) CPU_SET(static_cast<size_t>(core), &mask);
  }
  sched_setaffinity(0, sizeof mask, &mask);
}

std::vector<CoreSet> SplitCores(const CoreSet& cores, int ranks) {
  const int each = CountCores(cores) / ranks;
  std::vector<CoreSet> parts;
  if (each == 0) return parts;
  int taken = 0;
  for (int core = 0; core < kCores && taken < each * ranks; ++core) {
    if (!HasCore(cores, core)) continue;
    if (taken++ % each == 0) parts.emplace_back();
    AddCore(&parts.back(), core);
  }
  return parts;
}

int RanksOnCoresOf(const std::vector<CoreSet>& of_ranks, int own) {
  int count = 0;
  for (const CoreSet& cores : of_ranks)
    count += HaveCommonCore(cores, of_ranks[static_cast<size_t>(own)]) ? 1 : 0;
  return count;
}

std::string OversubscriptionWarning(const std::vector<CoreSet>& of_ranks,
                                    const std::vector<int>& ranks) {
  for (size_t i = 0; i < of_ranks.size(); ++i) {
    const int cores = CountCores(of_ranks[i]);
    if (cores == 0 || RanksOnCoresOf(of_ranks, static_cast<int>(i)) <= cores) continue;
    std::vector<std::string> names;
    for (size_t k = 0; k < of_ranks.size(); ++k) {
      if (HaveCommonCore(of_ranks[k], of_ranks[i])) names.push_back(Join(ranks[k]));
    }
    return Join(
        "Ranks ", JoinList(names), " share ", cores, cores == 1 ? " core" : " cores",
        " of this machine, so they slow each other down: start fewer ranks, or give each rank its "
        "own cores (mpirun --bind-to core; srun --cpus-per-task=1 --cpu-bind=cores)");
  }
  return "";
}

std::string QuotaWarning(int quota, int ranks) {
  if (quota == 0 || ranks <= quota) return "";
  return Join("The ", ranks, " ranks of this machine may use the time of only ", quota,
              quota == 1 ? " CPU" : " CPUs",
              " (the quota of their control group), so the system pauses each rank for part of the "
              "time, and the other ranks wait for it: start ",
              quota == 1 ? "one" : Join(quota, " ranks"), ", or request more CPUs");
}

}  // namespace trainer

#include "trainer/parallel/environment.h"

#include <cstdio>
#include <cstdlib>

#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"

namespace trainer {
namespace {

constexpr int kMostRanks = 1 << 16;  // ranks of one node; memory is mapped for each of them

using Get = std::function<const char*(const char*)>;

// Returns the value of a variable that counts tasks; 0 if it is not a positive whole number.
int TaskCountOf(const Get& get, const char* name) { return ParseThreadCount(get(name)); }

// Returns whether MPI joins several ranks, and sets count and count_variable. The count is 0 if
// only MPI knows it.
bool IsInMpiWorld(const Get& get, LaunchEnvironment* found) {
  // Open MPI's mpirun sets OMPI_COMM_WORLD_SIZE, MPICH's mpirun and srun --mpi=pmi2 set PMI_SIZE,
  // and srun --mpi=pmix sets PMIX_RANK.
  const auto says = [&](const char* name) {
    found->count = TaskCountOf(get, name);
    found->count_variable = name;
    return found->count > 0;
  };
  if (says("OMPI_COMM_WORLD_SIZE") || says("PMI_SIZE")) return found->count > 1;
  if (get("PMIX_RANK") == nullptr) return false;
  says("SLURM_STEP_NUM_TASKS");
  return found->count != 1;  // 0: another batch system started it, and MPI knows the number
}

// Parses TRAINER_WORLD, which --ranks=N sets for its ranks: rank:count:descriptor. Returns whether
// the value is valid; else sets the warning.
bool IsInOwnWorld(const char* text, LaunchEnvironment* found) {
  char rest = 0;
  const int read = std::sscanf(text, "%d:%d:%d%c", &found->rank, &found->count, &found->fd, &rest);
  if (read == 3 && found->count >= 1 && found->count <= kMostRanks && found->rank >= 0 &&
      found->rank < found->count && found->fd >= 0) {
    return true;
  }
  *found = {};
  found->warning =
      Join("TRAINER_WORLD='", EscapeControl(text), "' is ignored, because it is not one of the ",
           "values that --ranks=N sets for its ranks; unset the variable");
  return false;
}

// Returns this process's rank as its launcher says; 0 if it does not.
int RankByLauncher(const Get& get) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    int rank = 0;
    if (const char* const text = get(name);
        text != nullptr && std::sscanf(text, "%d", &rank) == 1) {
      return rank;
    }
  }
  return 0;
}

// Returns a warning if Slurm started or reserved several tasks, which MPI does not join; else "".
std::string SlurmWarning(const Get& get) {
  const int in_step = TaskCountOf(get, "SLURM_STEP_NUM_TASKS");
  if (in_step > 1) {
    return Join(
        "SLURM_STEP_NUM_TASKS is ", in_step,
        ", but these tasks are not connected by MPI: each one trains its own model. To train one "
        "model with all tasks, start them with: srun --mpi=pmix trainer train ...");
  }
  const int tasks = TaskCountOf(get, "SLURM_NTASKS");
  if (tasks < 2) return "";
  return Join("SLURM_NTASKS is ", tasks,
              ", but this run has one rank. To train with all tasks: srun --mpi=pmix trainer train "
              "... (or mpirun trainer train ...)");
}

}  // namespace

LaunchEnvironment ReadLaunchEnvironment(const Get& get) {
  LaunchEnvironment found;
  const char* const own = get("TRAINER_WORLD");
  if (own != nullptr && IsInOwnWorld(own, &found)) {
    found.launcher = LaunchEnvironment::kFork;
  } else if (IsInMpiWorld(get, &found)) {
    found.launcher = LaunchEnvironment::kMpi;
    found.rank = RankByLauncher(get);
  } else {
    found.count = 1;
    found.count_variable.clear();
    if (found.warning.empty()) found.warning = SlurmWarning(get);
  }
  return found;
}

LaunchEnvironment ReadLaunchEnvironment() {
  return ReadLaunchEnvironment([](const char* name) { return std::getenv(name); });
}

}  // namespace trainer

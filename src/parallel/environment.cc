#include "trainer/parallel/environment.h"

#include <cstdio>
#include <cstdlib>

#include "trainer/base/text.h"
#include "trainer/base/threads.h"

namespace trainer {
namespace {

using Get = std::function<const char*(const char*)>;

int Number(const Get& get, const char* name) { return ParseThreadCount(get(name)); }

// mpirun of Open MPI; MPICH's mpirun and srun --mpi=pmi2; srun --mpi=pmix.
bool IsInMpiWorld(const Get& get) {
  if (Number(get, "OMPI_COMM_WORLD_SIZE") > 0) return Number(get, "OMPI_COMM_WORLD_SIZE") > 1;
  if (Number(get, "PMI_SIZE") > 0) return Number(get, "PMI_SIZE") > 1;
  if (get("PMIX_RANK") == nullptr) return false;
  const int tasks = Number(get, "SLURM_STEP_NUM_TASKS");
  return tasks != 1;  // 0: another batch system, MPI will tell
}

std::string SlurmWarning(const Get& get) {
  const int in_step = Number(get, "SLURM_STEP_NUM_TASKS");
  if (in_step > 1) {
    return Join("SLURM_STEP_NUM_TASKS is ", in_step,
                ", and nothing joins these tasks: each trains a model of its own. Start them as "
                "ranks of one run with: srun --mpi=pmix trainer train ...");
  }
  const int tasks = Number(get, "SLURM_NTASKS");
  if (tasks < 2) return "";
  return Join("SLURM_NTASKS is ", tasks,
              ", and this run is alone. To train with all tasks: srun --mpi=pmix trainer train ... "
              "(or mpirun trainer train ...)");
}

}  // namespace

RankEnvironment ReadRankEnvironment(const Get& get) {
  RankEnvironment found;
  const char* const own = get("TRAINER_WORLD");
  if (own != nullptr && std::sscanf(own, "%d:%d:%d", &found.rank, &found.count, &found.fd) == 3) {
    found.launcher = RankLauncher::kOwn;
  } else if (IsInMpiWorld(get)) {
    found.launcher = RankLauncher::kMpi;
  } else {
    found.warning = SlurmWarning(get);
  }
  return found;
}

RankEnvironment ReadRankEnvironment() {
  return ReadRankEnvironment([](const char* name) { return std::getenv(name); });
}

}  // namespace trainer

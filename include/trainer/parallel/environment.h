#pragma once
// Detects the launcher of several ranks from the environment.

#include <functional>
#include <string>

namespace trainer {

struct LaunchEnvironment {
  enum Launcher { kNone, kFork, kMpi };
  Launcher launcher = kNone;
  // The launcher's values. With MPI the program uses them only to know whether this process is rank
  // 0, which reports errors first, and whether there are several ranks, which must find each other.
  int rank = 0;
  int count = 1;               // 0: unknown
  std::string count_variable;  // the variable that says how many ranks MPI joins
  int fd = -1;                 // from the fork launcher (see launch.h)
  // A sentence for the log if a batch system started or reserved several tasks and nothing joins
  // them; else "".
  std::string warning;
};

// Detects how this process was started: by --ranks=N (TRAINER_WORLD), by an mpirun or srun that
// joins several ranks (OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_RANK), or alone. `get` returns the
// value of a variable, or null.
LaunchEnvironment ReadLaunchEnvironment(const std::function<const char*(const char*)>& get);
// Reads the environment of this process.
LaunchEnvironment ReadLaunchEnvironment();

}  // namespace trainer

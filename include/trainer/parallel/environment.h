#pragma once
// Detects the launcher: what the environment says about other ranks.

#include <functional>
#include <string>

namespace trainer {

enum class RankLauncher { kNone, kFork, kMpi };

struct LaunchEnvironment {
  RankLauncher launcher = RankLauncher::kNone;
  // What the launcher says. With MPI the program uses only this: whether the process is rank 0,
  // which reports errors first, and whether there are several ranks, which must find each other.
  int rank = 0;
  int count = 1;               // 0: unknown
  std::string count_variable;  // the variable that says how many ranks MPI joins
  int fd = -1;                 // of the fork launcher (see launch.h)
  // A sentence for the log if a batch system started or reserved several tasks and nothing joins
  // them; else "".
  std::string warning;
};

// `get` returns the value of a variable, or null.
LaunchEnvironment ReadLaunchEnvironment(const std::function<const char*(const char*)>& get);
LaunchEnvironment ReadLaunchEnvironment();

}  // namespace trainer

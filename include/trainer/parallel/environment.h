#pragma once
// What the environment says of other ranks.

#include <functional>
#include <string>

namespace trainer {

enum class RankLauncher { kNone, kOwn, kMpi };

struct RankEnvironment {
  RankLauncher launcher = RankLauncher::kNone;
  // What the launcher says. Of MPI only this is believed: that a process of rank 0 is the first to
  // tell of an error, and that one of several ranks must find the others.
  int rank = 0;
  int count = 1;               // 0: it does not say
  std::string count_variable;  // which says the count of ranks that MPI joins
  int fd = -1;                 // of the own launcher (see launch.h)
  // A sentence for the log where a batch system started or reserved several tasks and nothing joins
  // them; else "".
  std::string warning;
};

// `get` gives the value of a variable, or null.
RankEnvironment ReadRankEnvironment(const std::function<const char*(const char*)>& get);
RankEnvironment ReadRankEnvironment();

}  // namespace trainer

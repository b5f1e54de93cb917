#pragma once
// What the environment says of other ranks.

#include <functional>
#include <string>

namespace trainer {

enum class RankLauncher { kNone, kOwn, kMpi };

struct RankEnvironment {
  RankLauncher launcher = RankLauncher::kNone;
  // Of the own launcher (see launch.h).
  int rank = 0;
  int count = 1;
  int fd = -1;
  // A sentence for the log where a batch system started or reserved several tasks and nothing joins
  // them; else "".
  std::string warning;
};

// `get` gives the value of a variable, or null.
RankEnvironment ReadRankEnvironment(const std::function<const char*(const char*)>& get);
RankEnvironment ReadRankEnvironment();

}  // namespace trainer

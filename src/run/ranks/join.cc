#include "trainer/run/ranks/join.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/failure.h"

namespace trainer {

int RanksToStart(const RankOptions& options) {
  const int ranks = options.ranks;
  const LaunchEnvironment environment = ReadLaunchEnvironment();
  if (environment.launcher == LaunchEnvironment::kFork) return 0;
  if (ranks > 0 && environment.launcher == LaunchEnvironment::kMpi) {
    throw Error(ErrorCode::kUsage,
                Join("--ranks=", ranks,
                     ": mpirun or srun already started the ranks of this run; leave --ranks out"));
  }
  return ranks > 1 ? ranks : 0;
}

int RanksToStart(const RankOptions& options, const DeviceOptions& device) {
  const int count = static_cast<int>(RequestedGpus(device).size());
  const int ranks = RanksToStart(options);
  if (ReadLaunchEnvironment().launcher != LaunchEnvironment::kNone || count < 2) return ranks;
  if (options.ranks == 0) return count;
  RequireGpusForRanks(count, options.ranks, options.share_gpu,
                      Join("--ranks=", options.ranks, " --gpu=", device.gpu));
  return ranks;
}

World* JoinRanks(const RankOptions& options, int patience) {
  const std::string warning = ReadLaunchEnvironment().warning;
  if (!warning.empty()) LOG(WARNING) << warning;
  World::Options settings;
  settings.bucket_bytes = static_cast<size_t>(options.bucket_size) * 1024;
  settings.peer_timeout =
      std::chrono::seconds(options.peer_timeout) + std::chrono::seconds(patience);
  settings.warn_after = std::chrono::seconds(options.peer_warning);
  World* const world = JoinWorld(settings);
  if (world == nullptr) return nullptr;
  const bool is_rank_0 = world->group().rank().rank == 0;
  if (!is_rank_0) LogWarningsOnly();
  // All ranks log warnings, and this one is about their host.
  if (world->topology().local_rank == 0 && !world->warning().empty())
    LOG(WARNING) << world->warning();
  if (!is_rank_0) return world;
  LOG(INFO) << world->Describe();
  constexpr size_t kMost = 64;
  const std::vector<std::string>& names = world->topology().names;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) LOG(INFO) << "  " << names[i];
  return world;
}

void LogToRankFile(const RankOptions& options, const Rank& rank, const SolverSpec& spec) {
  if (!options.log_all_ranks || rank.rank == 0) return;
  LogToFile(Join(spec.proto.snapshot_prefix(), "_rank_", rank.rank, ".log"));
  LOG(INFO) << RankPrefix() << "start of the log of this rank";
}

}  // namespace trainer

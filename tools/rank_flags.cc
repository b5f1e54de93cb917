#include "rank_flags.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/base/log.h"
#include "trainer/base/text.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/failure.h"
#include "trainer/parallel/launch.h"

namespace trainer {

std::vector<Flag> RankFlags() {
  return {{.name = "ranks",
           .kind = FlagKind::kWhole,
           .value = "N",
           .fallback = "0",
           .help = "start N ranks on this machine that train together; mpirun and srun start "
                   "them by themselves",
           .max = 1024},
          {.name = "bucket_size",
           .kind = FlagKind::kWhole,
           .value = "KIB",
           .fallback = "0",
           .help = "how many KiB of gradients ranks sum at once; 0: by measured latency and speed",
           .max = 1 << 20},
          {.name = "peer_timeout",
           .kind = FlagKind::kWhole,
           .value = "SECONDS",
           .fallback = "600",
           .help = "end the run when a rank has been silent for so long",
           .min = 1},
          {.name = "peer_warning",
           .kind = FlagKind::kWhole,
           .value = "SECONDS",
           .fallback = "60",
           .help = "warn of a rank that has been silent for so long",
           .min = 1}};
}

std::vector<Flag> WithRankFlags(std::vector<Flag> flags) {
  const std::vector<Flag> of_batch = {
      {.name = "global_batch",
       .kind = FlagKind::kSwitch,
       .help = "batch_size of the training net counts for all ranks together, not for each"},
      {.name = "scale_lr",
       .kind = FlagKind::kSwitch,
       .help = "multiply base_lr by the number of ranks; the rate rises to it over "
               "warmup_iter (a twentieth of max_iter where the solver has none)"},
      {.name = "sync_batch_norm",
       .kind = FlagKind::kSwitch,
       .help = "every BatchNorm of the training net takes its moments over the batches of all "
               "ranks (batch_norm_param.synchronized for one layer)"},
      {.name = "log_all_ranks",
       .kind = FlagKind::kSwitch,
       .help = "ranks other than 0 log too, each to the end of its own file, "
               "<snapshot_prefix>_rank_N.log"}};
  for (const std::vector<Flag>& more : {RankFlags(), of_batch}) {
    flags.insert(flags.end(), more.begin(), more.end());
  }
  return flags;
}

bool StartsRanks(const Flags& flags) {
  const int ranks = flags.Whole("ranks");
  const RankEnvironment environment = ReadRankEnvironment();
  if (ranks == 0 || environment.launcher == RankLauncher::kOwn) return false;
  if (environment.launcher == RankLauncher::kMpi) {
    throw Error(ErrorCode::kUsage,
                Join("--ranks=", ranks,
                     ": mpirun or srun has started the ranks of this run already; leave it out"));
  }
  return ranks > 1;
}

World* JoinRanks(const Flags& flags, int patience) {
  const std::string warning = ReadRankEnvironment().warning;
  if (!warning.empty()) LOG(WARNING) << warning;
  WorldSettings settings;
  settings.bucket_bytes = static_cast<size_t>(flags.Whole("bucket_size")) * 1024;
  settings.peer_timeout =
      std::chrono::seconds(flags.Whole("peer_timeout")) + std::chrono::seconds(patience);
  settings.warn_after = std::chrono::seconds(flags.Whole("peer_warning"));
  World* const world = JoinWorld(settings);
  if (world == nullptr) return nullptr;
  if (world->group().replica().rank != 0) {
    QuietLog();
    return world;
  }
  LOG(INFO) << world->Describe();
  constexpr size_t kMost = 64;
  const std::vector<std::string>& names = world->names();
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) LOG(INFO) << "  " << names[i];
  if (!world->warning().empty()) LOG(WARNING) << world->warning();
  return world;
}

void LogOfRank(const Flags& flags, const Replica& replica, const SolverSpec& spec) {
  if (!flags.Switch("log_all_ranks") || replica.rank == 0) return;
  LogToFile(Join(spec.proto.snapshot_prefix(), "_rank_", replica.rank, ".log"));
  LOG(INFO) << RankPrefix() << "beginning of its log";
}

}  // namespace trainer

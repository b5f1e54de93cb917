#include "rank_flags.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/environment.h"
#include "trainer/parallel/failure.h"

namespace trainer {

std::vector<Flag> RankFlags() {
  return {
      {.name = "ranks",
       .kind = FlagKind::kWhole,
       .value = "N",
       .fallback = "0",
       .help = "start N ranks on this machine that train one model; leave this out under mpirun "
               "and srun",
       .max = 1024},
      {.name = "bucket_size",
       .kind = FlagKind::kWhole,
       .value = "KIB",
       .fallback = "0",
       .help =
           "KiB of gradients that ranks sum at once; 0: chosen from the measured latency and speed",
       .max = 1 << 20},
      {.name = "peer_timeout",
       .kind = FlagKind::kWhole,
       .value = "SECONDS",
       .fallback = "600",
       .help = "stop the run if a rank has been silent for this long",
       .min = 1},
      {.name = "peer_warning",
       .kind = FlagKind::kWhole,
       .value = "SECONDS",
       .fallback = "60",
       .help = "warn if a rank has been silent for this long",
       .min = 1},
      {.name = "exchange_type",
       .value = "TYPE",
       .help = "number format of gradients sent between machines: f32, f16 or bf16; overrides the "
               "solver's exchange_type",
       .choices = "f32|f16|bf16"}};
}

std::vector<Flag> WithRankFlags(std::vector<Flag> flags) {
  const std::vector<Flag> of_batch = {
      {.name = "global_batch",
       .kind = FlagKind::kSwitch,
       .help = "batch_size of the training net is the batch of all ranks (or virtual_ranks) "
               "together, not of each one"},
      {.name = "scale_lr",
       .kind = FlagKind::kSwitch,
       .help = "multiply base_lr by the number of ranks (or virtual_ranks); the learning rate "
               "rises to it over warmup_iter (default: a twentieth of max_iter)"},
      {.name = "share_gpu",
       .kind = FlagKind::kSwitch,
       .help = "allow several ranks of a machine to use the same GPU"},
      {.name = "exchange",
       .value = "WAY",
       .fallback = "auto",
       .help = "how ranks sum gradients of GPUs: nccl, mpi (a CUDA-aware MPI), host (in CPU "
               "memory), or auto: the first of these that works",
       .choices = "auto|nccl|mpi|host"},
      {.name = "sync_batch_norm",
       .kind = FlagKind::kSwitch,
       .help = "every BatchNorm of the training net computes mean and variance over the batches of "
               "all ranks (for one layer: batch_norm_param.synchronized)"},
      {.name = "log_all_ranks",
       .kind = FlagKind::kSwitch,
       .help = "ranks other than 0 also log; rank N appends to <snapshot_prefix>_rank_N.log"}};
  for (const std::vector<Flag>& more : {RankFlags(), of_batch}) AddFlags("ranks", more, &flags);
  return flags;
}

int RanksToStart(const Flags& flags) {
  const int ranks = flags.Whole("ranks");
  const RankEnvironment environment = ReadRankEnvironment();
  if (environment.launcher == RankLauncher::kOwn) return 0;
  if (ranks > 0 && environment.launcher == RankLauncher::kMpi) {
    throw Error(ErrorCode::kUsage,
                Join("--ranks=", ranks,
                     ": mpirun or srun already started the ranks of this run; leave --ranks out"));
  }
  return ranks > 1 ? ranks : 0;
}

int RanksToStart(const Flags& flags, const std::vector<int>& gpus) {
  const int ranks = RanksToStart(flags), count = static_cast<int>(gpus.size());
  if (ReadRankEnvironment().launcher != RankLauncher::kNone || count < 2) return ranks;
  if (flags.Whole("ranks") == 0) return count;
  RequireGpusForRanks(count, flags.Whole("ranks"), flags.Switch("share_gpu"),
                      Join("--ranks=", flags.Whole("ranks"), " --gpu=", flags.Text("gpu")));
  return ranks;
}

std::optional<WireType> WireOf(const Flags& flags) {
  const std::string& text = flags.Text("exchange_type");
  for (const WireType type : {WireType::kF32, WireType::kF16, WireType::kBF16}) {
    if (text == NameOf(type)) return type;
  }
  return std::nullopt;
}

WireType TakeWire(const Flags& flags, SolverSpec* spec) {
  if (const std::optional<WireType> type = WireOf(flags)) {
    spec->proto.set_exchange_type(*type == WireType::kF16    ? caffe::FLOAT16
                                  : *type == WireType::kBF16 ? caffe::BFLOAT16
                                                             : caffe::FLOAT);
  }
  const caffe::Type type = spec->proto.exchange_type();
  return type == caffe::FLOAT16    ? WireType::kF16
         : type == caffe::BFLOAT16 ? WireType::kBF16
                                   : WireType::kF32;
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
  const bool tells = world->group().replica().rank == 0;
  if (!tells) LogWarningsOnly();
  // Of its machine: warnings are logged by all ranks.
  if (world->seat().local == 0 && !world->warning().empty()) LOG(WARNING) << world->warning();
  if (!tells) return world;
  LOG(INFO) << world->Describe();
  constexpr size_t kMost = 64;
  const std::vector<std::string>& names = world->names();
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) LOG(INFO) << "  " << names[i];
  return world;
}

void LogOfRank(const Flags& flags, const Rank& replica, const SolverSpec& spec) {
  if (!flags.Switch("log_all_ranks") || replica.rank == 0) return;
  LogToFile(Join(spec.proto.snapshot_prefix(), "_rank_", replica.rank, ".log"));
  LOG(INFO) << RankPrefix() << "start of the log of this rank";
}

}  // namespace trainer

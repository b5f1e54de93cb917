#include "rank_flags.h"

#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

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

Flag StrategyFlag() {
  static const std::string kNames = JoinList(StrategyRegistry::Get().Names(), "|");
  return {.name = "strategy",
          .value = "NAME",
          .help =
              "how ranks train together, see docs/strategies.md; overrides the solver's strategy. "
              "Set its options with --set, such as --set strategy_param.period=20",
          .choices = kNames};
}

Flag StagesFlag() {
  return {.name = "stages",
          .value = "auto",
          .help =
              "for strategy pipeline: divide the layers into stages by cost; without it, the "
              "`stage` field of the layers divides them. --set strategy_param.micro_batches=8 sets "
              "the number of micro-batches",
          .choices = "auto"};
}

RankOptions RankOptionsOf(const Flags& flags) {
  RankOptions options;
  options.ranks = flags.Whole("ranks");
  options.bucket_size = flags.Whole("bucket_size");
  options.peer_timeout = flags.Whole("peer_timeout");
  options.peer_warning = flags.Whole("peer_warning");
  options.exchange_type = flags.Text("exchange_type");
  return options;
}

RankOptions TrainingRankOptionsOf(const Flags& flags) {
  RankOptions options = RankOptionsOf(flags);
  options.exchange = flags.Text("exchange");
  options.global_batch = flags.Switch("global_batch");
  options.scale_lr = flags.Switch("scale_lr");
  options.sync_batch_norm = flags.Switch("sync_batch_norm");
  options.share_gpu = flags.Switch("share_gpu");
  options.log_all_ranks = flags.Switch("log_all_ranks");
  return options;
}

}  // namespace trainer

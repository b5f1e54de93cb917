#include "run_flags.h"

#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

void DeclareStart(FlagSet& flags, StartOptions* start) {
  flags.Bind(&start->snapshot, "snapshot", "FILE", "resume from this .solverstate, bit for bit");
  flags.Bind(&start->allow_outside, "allow_outside", "",
             "if the snapshot's weights are not in its folder, load them from the path that the "
             "snapshot names");
  flags
      .Bind(&start->resume, "resume", "auto",
            "resume from the newest undamaged snapshot of snapshot_prefix; if there is none, "
            "start from the beginning")
      .Choices("auto")
      .Otherwise("to resume from that file give --snapshot=");
  DeclareStartWeights(flags, start);
}

void DeclareStartWeights(FlagSet& flags, StartOptions* start) {
  flags.Bind(&start->weights, "weights", "FILES",
             "start from these .caffemodel files, separated by commas");
}

void DeclareBatch(FlagSet& flags, std::string* batch) {
  flags
      .Bind(batch, "batch", "N|auto",
            "replace the batch_size of the training net's data layers; auto: the best by a short "
            "'trainer find-batch'. The learning rate and the number of iterations do not change")
      .Alias("batch_size");
}

void DeclareMemoryLimit(FlagSet& flags, std::string* memory) {
  flags.Bind(memory, "memory", "SIZE|auto",
             "memory that the run (each of its ranks) may use, such as 8GiB; auto: the available "
             "memory. A run that needs more drops outputs of layers and computes them again in "
             "the backward pass: same results, more work");
}

void DeclareMaxWall(FlagSet& flags, std::string* max_wall) {
  flags.Bind(max_wall, "max_wall", "TIME",
             "save a snapshot and exit with code 75 before the process has run for this long: "
             "4:00:00, 1-12:00:00, 90 (minutes), 90m; none: no limit. Default: the time limit of "
             "the Slurm or PBS job, if there is one");
}

void DeclareRunFolder(FlagSet& flags, std::string* run) {
  flags
      .Bind(
          run, "run", "DIR",
          "keep a record of the run in this folder (created if needed): solver, net, environment, "
          "log, metrics.jsonl and .csv, TensorBoard events; without DIR: in <snapshot_prefix>_run")
      .IfBare("auto");
}

void DeclareRanks(FlagSet& flags, RankOptions* ranks) {
  flags
      .Bind(&ranks->ranks, "ranks", "N",
            "start N ranks on this machine that train one model; leave this out under mpirun "
            "and srun")
      .Range(0, 1024);
  flags
      .Bind(
          &ranks->bucket_size, "bucket_size", "KIB",
          "KiB of gradients that ranks sum at once; 0: chosen from the measured latency and speed")
      .Range(0, 1 << 20);
  flags
      .Bind(&ranks->peer_timeout, "peer_timeout", "SECONDS",
            "stop the run if a rank has been silent for this long")
      .Range(1);
  flags
      .Bind(&ranks->peer_warning, "peer_warning", "SECONDS",
            "warn if a rank has been silent for this long")
      .Range(1);
  flags
      .Bind(&ranks->exchange_type, "exchange_type", "TYPE",
            "number format of gradients sent between machines: f32, f16 or bf16; overrides the "
            "solver's exchange_type")
      .Choices("f32|f16|bf16");
}

void DeclareTrainingRanks(FlagSet& flags, RankOptions* ranks) {
  DeclareRanks(flags, ranks);
  flags.Bind(&ranks->global_batch, "global_batch", "",
             "batch_size of the training net is the batch of all ranks (or virtual_ranks) "
             "together, not of each one");
  flags.Bind(&ranks->scale_lr, "scale_lr", "",
             "multiply base_lr by the number of ranks (or virtual_ranks); the learning rate "
             "rises to it over warmup_iter (default: a twentieth of max_iter)");
  flags.Bind(&ranks->share_gpu, "share_gpu", "",
             "allow several ranks of a machine to use the same GPU");
  flags
      .Bind(&ranks->exchange, "exchange", "WAY",
            "how ranks sum gradients of GPUs: nccl, mpi (a CUDA-aware MPI), host (in CPU "
            "memory), or auto: the first of these that works")
      .Choices("auto|nccl|mpi|host");
  flags.Bind(&ranks->sync_batch_norm, "sync_batch_norm", "",
             "every BatchNorm of the training net computes mean and variance over the batches of "
             "all ranks (for one layer: batch_norm_param.synchronized)");
  flags.Bind(&ranks->log_all_ranks, "log_all_ranks", "",
             "ranks other than 0 also log; rank N appends to <snapshot_prefix>_rank_N.log");
}

void DeclareStrategy(FlagSet& flags, RankOptions* ranks) {
  static const std::string names = JoinList(StrategyRegistry::Get().Names(), "|");
  flags
      .Bind(&ranks->strategy, "strategy", "NAME",
            "how ranks train together, see docs/strategies.md; overrides the solver's strategy. "
            "Set its options with --set, such as --set strategy_param.period=20")
      .Choices(names);
}

void DeclareStages(FlagSet& flags, RankOptions* ranks) {
  flags
      .Bind(&ranks->pipeline_stages, "stages", "auto",
            "for strategy pipeline: divide the layers into stages by cost; without it, the "
            "`stage` field of the layers divides them. --set strategy_param.micro_batches=8 sets "
            "the number of micro-batches")
      .Choices("auto");
}

namespace {

// The flags that `declare` declares for variables of type T.
template <auto declare, class T>
std::vector<Flag> FlagsOf() {
  static T unused;
  static FlagSet set("");
  if (set.flags().empty()) declare(set, &unused);
  return {set.flags().begin(), set.flags().end()};
}

}  // namespace

Flag MaxWallFlag() { return FlagsOf<DeclareMaxWall, std::string>()[0]; }
Flag RunFolderFlag() { return FlagsOf<DeclareRunFolder, std::string>()[0]; }
Flag BatchFlag() { return FlagsOf<DeclareBatch, std::string>()[0]; }
Flag StartWeightsFlag() { return FlagsOf<DeclareStartWeights, StartOptions>()[0]; }
std::vector<Flag> StartFlags() { return FlagsOf<DeclareStart, StartOptions>(); }
std::vector<Flag> RankFlags() { return FlagsOf<DeclareRanks, RankOptions>(); }

std::vector<Flag> WithRankFlags(std::vector<Flag> flags) {
  AddFlags("ranks", FlagsOf<DeclareTrainingRanks, RankOptions>(), &flags);
  return flags;
}

StartOptions StartOptionsOf(const Flags& flags) {
  StartOptions options = WeightOptionsOf(flags);
  options.snapshot = flags.Text("snapshot");
  options.resume = flags.Text("resume");
  options.allow_outside = flags.Switch("allow_outside");
  return options;
}

StartOptions WeightOptionsOf(const Flags& flags) {
  StartOptions options;
  options.weights = flags.Text("weights");
  return options;
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

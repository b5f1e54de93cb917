#include "run_flags.h"

#include "flag_groups.h"
#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

void DeclareStart(FlagSet& flags, StartOptions* start) {
  flags.Bind(&start->snapshot, "snapshot", "FILE", "resume from this .solverstate, bit for bit");
  flags.Bind(&start->allow_outside, "allow_outside", "",
             "if the snapshot's weights are not in its folder, load them from the path that the "
             "snapshot names");
  flags
      .Bind(&start->resume, "resume", "auto|FILE",
            "resume from the newest undamaged snapshot of snapshot_prefix; if there is none, "
            "start from the beginning. FILE: the same as --snapshot=FILE")
      .IfBare("auto");
  DeclareStartWeights(flags, start);
}

void DeclareStartWeights(FlagSet& flags, StartOptions* start) {
  flags.Bind(&start->weights, "weights", "FILES",
             "start from these files of weights, separated by commas: .caffemodel, .h5, "
             ".safetensors, .npz");
  DeclareNames(flags);
  flags.Bind(&start->reset, "reset", "LAYERS",
             "layers that do not start from --weights: names separated by commas, or a pattern "
             "between slashes: /fc.*/. The last layer starts anew by itself if its size differs");
}

void DeclareFreeze(FlagSet& flags, SolverSource* solver) {
  flags.Bind(&solver->freeze, "freeze", "all-but-last|N|/REGEX/",
             "layers that do not learn: all with weights but the last, the first N with weights, "
             "or those whose whole name matches; the same as freeze: true in the layers");
}

void DeclareUnfreezeAt(FlagSet& flags, SolverSource* solver) {
  flags
      .Bind(&solver->unfreeze_at, "unfreeze_at", "ITER",
            "from this iteration on, frozen layers learn, too; the same as unfreeze_at in the "
            "solver")
      .Range(1);
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

BufferReuse ParseMemoryMode(const std::string& memory) {
  if (memory == "separate") return BufferReuse::kSeparate;
  return memory == "poisoned" ? BufferReuse::kPoisoned : BufferReuse::kShared;
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
      .Bind(&ranks->pipeline_stages, "pipeline_stages", "auto",
            "for strategy pipeline: divide the layers into stages by cost; without it, the "
            "`stage` field of the layers divides them. --set strategy_param.micro_batches=8 sets "
            "the number of micro-batches")
      .Choices("auto")
      .Alias("stages");
}

}  // namespace trainer

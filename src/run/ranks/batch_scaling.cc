#include "ranks/batch_scaling.h"

#include <glog/logging.h>

#include <algorithm>

#include "batch_size.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

// Returns "4 ranks" or "4 virtual ranks", which divide a batch.
std::string Sharers(const SolverSpec& spec, int count) {
  return Join(count, spec.proto.virtual_ranks() > 1 ? " virtual ranks" : " ranks");
}

// Divides each batch_size of the training net by `ranks`. Throws kUsage, at the layer, if one is
// not divisible.
void DivideBatches(int ranks, SolverSpec* spec) {
  ChangeTrainingBatches(spec, [&](const LayerSpec& layer, int64_t batch) {
    if (batch % ranks == 0) return batch / ranks;
    throw Error(ErrorCode::kUsage, layer.Where(),
                Join("--global_batch: layer '", layer.name(), "' has batch_size ", batch,
                     ", which is not divisible by the ", Sharers(*spec, ranks),
                     "; choose a multiple of ", ranks));
  });
}

// Multiplies base_lr by the number of ranks (Goyal et al., arXiv:1706.02677). If the solver has no
// warm-up, adds one that starts at the old base_lr and takes a twentieth of the iterations.
void ScaleRate(int ranks, caffe::SolverParameter* solver) {
  const float before = solver->base_lr();
  solver->set_base_lr(before * static_cast<float>(ranks));
  if (solver->warmup_iter() == 0 && solver->rampup_interval() == 0) {
    solver->set_warmup_iter(solver->max_iter() / 20);
    solver->set_warmup_lr(before);
  }
  const int rise = std::max(solver->warmup_iter(), solver->rampup_interval());
  LOG(INFO) << "--scale_lr: base_lr is " << solver->base_lr() << ", " << ranks << " times "
            << before << "; the learning rate rises to it over the first " << rise
            << (rise == 1 ? " iteration" : " iterations");
}

// Makes the BatchNorm layers of the training net compute their statistics over all ranks. Warns if
// there are none.
void SynchronizeBatchNorms(SolverSpec* spec) {
  int layers = 0;
  for (LayerSpec* layer : TrainingLayers(spec)) {
    if (layer->type() != "BatchNorm") continue;
    layer->mutable_proto().mutable_batch_norm_param()->set_synchronized(true);
    ++layers;
  }
  if (layers == 0)
    LOG(WARNING) << "--sync_batch_norm has no effect: the training net has no BatchNorm layer";
}

}  // namespace

int BatchParts(const SolverSpec& spec, const Rank& rank) {
  const auto strategy = MakeStrategy(spec, rank.size);
  const bool is_divided = strategy->pipeline() != nullptr;  // a pipeline computes one batch
  const int sharers = is_divided ? 1 : strategy->Workers(rank.size);
  return std::max(sharers, spec.proto.virtual_ranks());
}

void ScaleForRanks(const RankOptions& options, const Rank& rank, SolverSpec* spec) {
  const bool global = options.global_batch, scales = options.scale_lr;
  if (global && scales) {
    throw Error(
        ErrorCode::kUsage,
        "--global_batch and --scale_lr cannot both be given: with --global_batch the batch of a "
        "step does not grow, so base_lr is right without scaling; leave one of them out");
  }
  if (options.sync_batch_norm && rank.size > 1) SynchronizeBatchNorms(spec);
  const int parts = BatchParts(*spec, rank);
  if (parts == 1) return;
  if (global) DivideBatches(parts, spec);
  if (scales) ScaleRate(parts, &spec->proto);
  const auto batch = static_cast<uint64_t>(BatchSizeOf(spec));
  if (batch == 0) return;
  const auto passes = static_cast<uint64_t>(spec->proto.iter_size());
  LOG(INFO) << "Batch of an iteration: " << batch * passes * static_cast<uint64_t>(parts) << " ("
            << Sharers(*spec, parts)
            << (spec->proto.virtual_ranks() == 1 ? ""
                : rank.size == 1                 ? " on one rank"
                                                 : Join(" on ", rank.size, " ranks"))
            << ", batch_size " << batch << " each"
            << (passes > 1 ? Join(", iter_size ", passes) : "") << "); base_lr "
            << spec->proto.base_lr()
            << (global || scales
                    ? ""
                    : ", the solver's value, meant for the batch of one rank: --scale_lr scales it "
                      "to all ranks, --global_batch keeps the batch");
}

}  // namespace trainer

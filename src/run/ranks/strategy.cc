#include "trainer/run/ranks/strategy.h"

#include <glog/logging.h>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

void ApplyPipelineStages(const std::string& stages, SolverSpec* spec) {
  if (stages.empty()) return;
  if (spec->proto.strategy() != "pipeline") {
    throw Error(
        ErrorCode::kUsage,
        Join("--pipeline_stages=", stages, " is for strategy 'pipeline', but this run uses '",
             EscapeControl(spec->proto.strategy()), "': add --strategy=pipeline"));
  }
  spec->proto.mutable_strategy_param()->set_stages(stages);
}

namespace {

// Warns if a layer sets `stage` and the strategy is not pipeline, the only one that reads the
// field.
void WarnOfUnusedStages(const SolverSpec& spec) {
  if (spec.proto.strategy() == "pipeline") return;
  for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
    if (!layer.proto().has_stage()) continue;
    LOG(WARNING) << EscapeControl(Join(layer.Where("stage").ToString(),
                                       ": `stage` has no effect "
                                       "with strategy '",
                                       spec.proto.strategy(),
                                       "'; only --strategy=pipeline uses it"));
    return;
  }
}

}  // namespace

void ApplyStrategy(const RankOptions& options, const Rank& rank, SolverSpec* spec) {
  const std::string& name = options.strategy;
  if (!name.empty()) spec->proto.set_strategy(name);
  ApplyPipelineStages(options.pipeline_stages, spec);
  if (rank.rank == 0) WarnOfUnusedStages(*spec);
  if (rank.size > 1 || spec->proto.strategy() == "synchronous") return;
  throw Error(ErrorCode::kUsage, name.empty() ? spec->Where("strategy") : SourceRef{},
              Join("strategy '", EscapeControl(spec->proto.strategy()),
                   "' needs several ranks, but this run has one: start more with --ranks=N or "
                   "mpirun, or leave the strategy out"));
}

}  // namespace trainer

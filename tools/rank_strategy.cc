// How the ranks of a run train together.

#include <glog/logging.h>

#include "rank_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

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

void TakeStages(const Flags& flags, SolverSpec* spec) {
  const std::string& stages = flags.Text("stages");
  if (stages.empty()) return;
  if (spec->proto.strategy() != "pipeline") {
    throw Error(ErrorCode::kUsage,
                Join("--stages=", stages, " is for strategy 'pipeline', but this run uses '",
                     EscapeControl(spec->proto.strategy()), "': add --strategy=pipeline"));
  }
  spec->proto.mutable_strategy_param()->set_stages(stages);
}

// Where no strategy reads it.
void NoteStages(const SolverSpec& spec) {
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

void TakeStrategy(const Flags& flags, const Rank& replica, SolverSpec* spec) {
  const std::string& name = flags.Text("strategy");
  if (!name.empty()) spec->proto.set_strategy(name);
  TakeStages(flags, spec);
  if (replica.rank == 0) NoteStages(*spec);
  if (replica.size > 1 || spec->proto.strategy() == "synchronous") return;
  throw Error(ErrorCode::kUsage, name.empty() ? spec->Where("strategy") : SourceRef{},
              Join("strategy '", EscapeControl(spec->proto.strategy()),
                   "' needs several ranks, but this run has one: start more with --ranks=N or "
                   "mpirun, or leave the strategy out"));
}

}  // namespace trainer

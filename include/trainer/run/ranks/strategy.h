#pragma once
// --strategy and --pipeline_stages change the solver.

#include <string>

#include "trainer/base/ranks/rank.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// Sets strategy_param.stages; "" changes nothing. Throws kUsage unless the strategy is pipeline.
void ApplyPipelineStages(const std::string& stages, SolverSpec* spec);
// Sets the strategy and its stages. Throws kUsage for a strategy of several ranks in a run alone.
void ApplyStrategy(const RankOptions& options, const Rank& rank, SolverSpec* spec);

}  // namespace trainer

// How the ranks of a run train together.

#include "rank_flags.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

Flag StrategyFlag() {
  static const std::string kNames = JoinList(StrategyRegistry::Get().Names(), "|");
  return {.name = "strategy",
          .value = "NAME",
          .help =
              "how ranks train together, see docs/strategies.md; wins over the solver's "
              "strategy. --set strategy_param.period=20 and the like set what belongs to it",
          .choices = kNames};
}

void TakeStrategy(const Flags& flags, const Replica& replica, SolverSpec* spec) {
  const std::string& name = flags.Text("strategy");
  if (!name.empty()) spec->proto.set_strategy(name);
  if (replica.count > 1 || spec->proto.strategy() == "synchronous") return;
  throw Error(ErrorCode::kUsage, name.empty() ? spec->Where("strategy") : SourceRef{},
              Join("strategy '", EscapeControl(spec->proto.strategy()),
                   "' is for several ranks, and this run has one: start more with --ranks=N or "
                   "mpirun, or leave the strategy out"));
}

}  // namespace trainer

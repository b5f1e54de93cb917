#include "plan_ranks.h"

#include <iostream>

#include "scaling_flags.h"
#include "shared_flags.h"

namespace trainer {

std::vector<Flag> WithPlanRanksFlags(std::vector<Flag> flags) {
  static ScalingFlags values;
  static FlagSet declared("plan");
  if (declared.flags().empty()) DeclareScaling(declared, &values);
  flags.insert(flags.end(), declared.flags().begin(), declared.flags().end());
  return flags;
}

std::vector<int> RanksOf(const Flags& flags) { return ParseRankCounts(flags.Text("ranks")); }

int PlanRanks(const Flags& flags) {
  const ScalingRequest request = MakeScalingRequest(ScalingFlagsOf(flags));
  const ScalingReport report =
      flags.Has("solver")
          ? PredictScaling(request, SolverOf(flags))
          : PredictScaling(request, ModelOf(flags), NetStateOf(flags, caffe::TRAIN));
  std::cout << (flags.Switch("json") ? ToJson(report).ToString() : ToText(report));
  return 0;
}

}  // namespace trainer

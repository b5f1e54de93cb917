#pragma once
// The flags of `trainer plan --ranks`.

#include <string>
#include <vector>

#include "trainer/analysis/scaling/scaling_report.h"
#include "trainer/cli/flag_set.h"

namespace trainer {

// The values of the flags with the same names.
struct ScalingFlags {
  std::string ranks, link = "10GbE", compute, jitter;
  int ranks_per_node = 1, iterations = 10, bucket_size = 0;
};

void DeclareScaling(FlagSet& flags, ScalingFlags* scaling);

// The numbers of a list such as "2,4,8". Throws kUsage.
std::vector<int> ParseRankCounts(const std::string& list);

// Throws kUsage for values that make no sense.
ScalingRequest MakeScalingRequest(const ScalingFlags& scaling);

}  // namespace trainer

#pragma once
// Declares the flags of `trainer plan --ranks`.

#include <string>
#include <vector>

#include "trainer/analysis/scaling/scaling_report.h"
#include "trainer/cli/flag_set.h"

namespace trainer {

// Holds the values of the flags with the same names.
struct ScalingFlags {
  std::string ranks, link = "10GbE", compute, jitter;
  int ranks_per_node = 1, iterations = 10, bucket_size = 0;
};

// Declares the flags of ScalingFlags.
void DeclareScaling(FlagSet& flags, ScalingFlags* scaling);

// Returns the numbers of a list such as "2,4,8". Throws kUsage for a number outside 1 to 65536.
std::vector<int> ParseRankCounts(const std::string& list);

// Parses the texts of the flags and looks up the network and the GPU that they name. Throws kUsage
// for invalid values.
ScalingRequest MakeScalingRequest(const ScalingFlags& scaling);

}  // namespace trainer

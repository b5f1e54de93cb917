#pragma once
// The work of one rank, from which the speed of several is predicted.

#include <string>
#include <vector>

#include "scaling/iteration_model.h"
#include "trainer/analysis/scaling/scaling_report.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The work of one rank, and the cluster and the numbers of ranks to predict for.
struct RankWork {
  std::vector<int> ranks;
  ClusterModel cluster;
  ScalingOptions options;
  IterationProfile profile;
  std::string net, source;  // where the profile comes from: "measured here, 2 threads"
};

// Determines the work of one rank; PredictIteration then gives the time for a number of ranks. The
// second form takes a net without a solver, with one pass per iteration and one state per weight.
// Throws kUsage for a net without parameters to train.
RankWork DetermineRankWork(const ScalingRequest& request, SolverSpec spec);
RankWork DetermineRankWork(const ScalingRequest& request, const NetSpec& net,
                           const caffe::NetState& state);

// Returns lines of at most 80 columns: a table, and the timeline for the last number of ranks.
std::string ToText(const RankWork& work);
// Returns the profile of one rank, and the prediction with its buckets for each number of ranks.
Json ToJson(const RankWork& work);

}  // namespace trainer

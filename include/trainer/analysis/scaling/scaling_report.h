#pragma once
// Predicts how fast several ranks train a net.

#include <optional>
#include <string>
#include <vector>

#include "trainer/analysis/scaling/iteration_model.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The work of a rank is measured on this machine unless `gpu` or `compute_ms` is set.
struct ScalingRequest {
  std::vector<int> ranks;  // a prediction for each
  ClusterModel cluster;
  size_t bucket_bytes = 0;           // 0: the bucket size that a run chooses by itself
  std::optional<double> jitter;      // as in ScalingOptions; default: as measured, else 0
  const GpuSpec* gpu = nullptr;      // estimate the work for this GPU
  std::optional<double> compute_ms;  // the time of an iteration of one rank
  int iterations = 10;               // to measure
};

// The work of one rank, and the cluster and the numbers of ranks to predict for.
struct ScalingReport {
  std::vector<int> ranks;
  ClusterModel cluster;
  ScalingOptions options;
  IterationProfile profile;
  std::string net, source;  // where the profile comes from: "measured here, 2 threads"
};

// Determines the work of one rank; PredictIteration then gives the time for a number of ranks. The
// second form takes a net without a solver, with one pass per iteration and one state per weight.
// Throws kUsage for a net without parameters to train.
ScalingReport PredictScaling(const ScalingRequest& request, SolverSpec spec);
ScalingReport PredictScaling(const ScalingRequest& request, const NetSpec& net,
                             const caffe::NetState& state);

// Returns a cluster with the link of that name ("10GbE"), or the cluster of a file that 'trainer
// bench-comm --json' wrote. Throws kUsage for neither, and the errors of ReadAllReduceResults and
// FitCluster.
ClusterModel FindCluster(const std::string& link_or_file);

// Returns lines of at most 80 columns: a table, and the timeline for the last number of ranks.
std::string ToText(const ScalingReport& report);
// Returns the profile of one rank, and the prediction with its buckets for each number of ranks.
Json ToJson(const ScalingReport& report);

}  // namespace trainer

#pragma once
// Predicts how fast several ranks train a net.

#include <optional>
#include <string>
#include <vector>

#include "trainer/analysis/scaling/cluster_model.h"
#include "trainer/analysis/scaling/gpu_specs.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The work of a rank is measured on this machine unless `gpu` or `compute_ms` is set.
struct ScalingRequest {
  std::vector<int> ranks;  // a prediction for each
  ClusterModel cluster;
  size_t bucket_bytes = 0;  // 0: the bucket size that a run chooses by itself
  // Standard deviation of a rank's time, as a fraction of it; default: as measured, else 0.
  std::optional<double> jitter;
  const GpuSpec* gpu = nullptr;      // estimate the work for this GPU
  std::optional<double> compute_ms;  // the time of an iteration of one rank
  int iterations = 10;               // to measure
};

// Predictions for the ranks of a request.
struct ScalingReport {
  // A table, and the timeline for the last number of ranks, in lines of at most 80 columns.
  std::string text;
  // The work of one rank, and for each number of ranks the prediction with its buckets.
  Json json;
};

// Determines the work of one rank, and predicts the time of an iteration for each number of ranks.
// The second form takes a net without a solver, with one pass per iteration and one state per
// weight. Throws kUsage for a net without parameters to train.
ScalingReport PredictScaling(const ScalingRequest& request, SolverSpec spec);
ScalingReport PredictScaling(const ScalingRequest& request, const NetSpec& net,
                             const caffe::NetState& state);

// Returns a cluster with the link of that name ("10GbE"), or the cluster of a file that 'trainer
// bench-comm --json' wrote. Throws kUsage for neither, and the errors of ReadAllReduceResults and
// FitCluster.
ClusterModel FindCluster(const std::string& link_or_file);

}  // namespace trainer

#pragma once
// Derives the model of a cluster from all-reduces measured on it.

#include <string>

#include "trainer/analysis/communication/all_reduce_results.h"
#include "trainer/analysis/scaling/cluster_model.h"

namespace trainer {

// Returns the cluster for which PredictAllReduce gives the measured times. On one machine the fit
// sets the bandwidth of its memory; on several machines it sets the link between them, and `inside`
// describes each machine. `name` is for messages. Throws kData for fewer than two sizes, or for
// times that no cluster has.
ClusterModel FitCluster(const std::string& name, const AllReduceResults& measured,
                        const ClusterModel::IntraNode& inside = {});

}  // namespace trainer

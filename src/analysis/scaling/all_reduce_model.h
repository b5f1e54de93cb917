#pragma once
// Predicts how long an all-reduce takes.

#include <cstddef>

#include "trainer/analysis/scaling/cluster_model.h"

namespace trainer {

// All times in seconds.
struct AllReduceTime {
  double inside = 0;   // within the machines
  double between = 0;  // between the machines
  double latency = 0;  // the part of both that does not depend on the number of bytes

  double Total() const { return inside + between; }
};

// Predicts the all-reduce of `bytes` of f32 gradients over all ranks, by the algorithm of
// src/parallel. A machine with fewer ranks than the others counts as a full one.
AllReduceTime PredictAllReduce(const ClusterModel& cluster, double bytes);

// Returns the bucket size that a run on this cluster chooses by itself; 0 with one rank.
size_t ChooseBucketBytes(const ClusterModel& cluster);

}  // namespace trainer

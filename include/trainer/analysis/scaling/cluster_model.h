#pragma once
// A model of the machines of a run: how long an all-reduce over its ranks takes.

#include <cstddef>

#include "trainer/analysis/scaling/link_model.h"

namespace trainer {

// How fast the ranks of one machine sum.
struct IntraNodeModel {
  double latency = 1e-6;           // seconds until a rank sees what another rank has written
  double bytes_per_second = 20e9;  // read and written by all ranks together
  bool by_gpus = false;            // GPUs use their own links; then bytes_per_second is per GPU
};

// The ranks, the machines and their links. The last machine may have fewer ranks.
struct ClusterModel {
  int ranks = 1;
  int ranks_per_machine = 1;
  IntraNodeModel inside;
  LinkModel link = MakeLinkModel(*FindLink("10GbE"));
  double wire_bytes = 4;  // per number, between machines
  // The fraction of its speed that a rank loses while gradients are sent: 0 if the sending thread
  // has its own core, 1 if nothing is computed meanwhile.
  double overlap_cost = 0;

  // Rounds up, because the last machine may have fewer ranks.
  int machines() const { return (ranks + ranks_per_machine - 1) / ranks_per_machine; }
};

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

#pragma once
// The machines of a run, as a model: how long a sum of gradients over all ranks takes.

#include <cstddef>

#include "trainer/scaling/link.h"

namespace trainer {

// How the ranks of one machine sum.
struct InsideMachine {
  double latency = 1e-6;           // seconds until one rank sees what another one has posted
  double bytes_per_second = 20e9;  // that all ranks together read and write
  bool by_gpus = false;            // by links of their own: bytes_per_second is of one GPU then
};

struct Cluster {
  int ranks = 1;
  int ranks_per_machine = 1;
  InsideMachine inside;
  Link link = MakeLink(*FindLink("10GbE"));
  double wire_bytes = 4;  // of a number between machines
  // The part of a rank's speed that is lost while gradients are sent: 0 where the thread that sends
  // has a core of its own, 1 where nothing is computed meanwhile.
  double overlap_cost = 0;

  int machines() const { return (ranks + ranks_per_machine - 1) / ranks_per_machine; }
};

struct SumTime {
  double inside = 0;   // seconds in the machines
  double between = 0;  // seconds between them
  double latency = 0;  // what of both would be left of a sum of one number

  double Total() const { return inside + between; }
};

// A sum of `bytes` of gradients (f32) over all ranks of the cluster, as src/parallel makes it. A
// machine with fewer ranks than the others counts as a full one.
SumTime TimeOfSum(const Cluster& cluster, double bytes);

// The bucket that a run on this cluster chooses by itself.
size_t BucketBytesOf(const Cluster& cluster);

}  // namespace trainer

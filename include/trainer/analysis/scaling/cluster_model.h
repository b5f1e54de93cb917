#pragma once
// A model of the machines of a run, by which the time of an all-reduce is predicted.

#include "trainer/analysis/scaling/link_model.h"

namespace trainer {

// The ranks, the machines and their links. The last machine may have fewer ranks.
struct ClusterModel {
  // How fast the ranks of one machine sum.
  struct IntraNode {
    double latency = 1e-6;           // seconds until a rank sees what another rank has written
    double bytes_per_second = 20e9;  // read and written by all ranks together
    bool by_gpus = false;            // GPUs use their own links; then bytes_per_second is per GPU
  };

  int ranks = 1;
  int ranks_per_machine = 1;
  IntraNode inside;
  LinkModel link = MakeLinkModel(*FindLink("10GbE"));
  double wire_bytes = 4;  // per number, between machines
  // The fraction of its speed that a rank loses while gradients are sent: 0 if the sending thread
  // has its own core, 1 if nothing is computed meanwhile.
  double overlap_cost = 0;

  // Rounds up, because the last machine may have fewer ranks.
  int machines() const { return (ranks + ranks_per_machine - 1) / ranks_per_machine; }
};

}  // namespace trainer

#pragma once
// The times of one rank's work in an iteration, and when its gradients are ready: measured on this
// machine, given in milliseconds, or estimated for a GPU.

#include <string>
#include <vector>

#include "trainer/analysis/scaling/gpu_specs.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/net/graph.h"

namespace trainer {

// Gradients that become final together, with the backward step of one layer.
struct GradientReady {
  std::string layer;
  double bytes = 0;
  double ready = 0;  // seconds after backward began
};

// The work of one rank in an iteration, without communication.
struct IterationProfile {
  double forward = 0, backward = 0, update = 0;  // seconds
  std::vector<GradientReady> gradients;          // in the order in which they become ready
  double images = 0;                             // per rank and iteration

  double Seconds() const { return forward + backward + update; }
  // Returns the bytes of all gradients.
  double GradientBytes() const;
};
// Returns `profile` with every time multiplied by `factor`.
IterationProfile Scaled(const IterationProfile& profile, double factor);

// Returns the times measured on this machine. Uses their mean, because a delay of one rank delays
// all ranks. `passes`: iter_size.
IterationProfile MeasuredIteration(const Graph& graph, const NetProfile& measured, int passes);

// Returns an estimate for a GPU: the roofline time of each layer divided by the fraction of it that
// published trainings reach. The net may be planned only.
IterationProfile EstimatedIteration(const Graph& graph, const GpuSpec& gpu, int passes,
                                    int states_per_weight);

// Returns an iteration that takes `seconds`, divided among the layers as on a processor that does
// 20 operations per byte.
IterationProfile GivenIteration(const Graph& graph, double seconds, int passes,
                                int states_per_weight);

}  // namespace trainer

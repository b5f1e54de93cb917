#pragma once
// Measures how long a net's layers take.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/analysis/timing/timing_samples.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/device/peak_benchmark.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// The work of a layer in one direction: floating-point operations and bytes moved. 0: not counted.
struct OpCost {
  double flops = 0, bytes = 0;
  bool computes_fewer = false;  // Winograd's algorithm: fewer operations than are counted
};

// The times of one layer. A layer that is fused into another one has no time of its own.
struct LayerProfile {
  std::string name, type, implementation;
  std::optional<std::string> computed_by;  // the layer that this one is fused into
  std::vector<std::string> declined;       // implementations that were not chosen, with the reason
  OpCost forward_cost, backward_cost;
  TimingSamples forward, backward;
  // Kernels, copies and fills that the layer enqueues. Empty where the device does not count them.
  std::optional<int> forward_operations, backward_operations;
};

// The times of a net and its layers. Times are in milliseconds.
struct NetProfile {
  std::string net;
  int iterations = 0;
  std::vector<LayerProfile> layers;
  TimingSamples forward, backward;  // sums over all layers, timed one by one
  TimingSamples pass;               // forward and backward without a clock between the layers
  TimingSamples step;               // a solver's whole iteration; empty without a solver
  int passes_per_step = 1;          // iter_size of the solver
  double wait_ms = 0;               // time per pass in which the net waited for data
  size_t update_bytes = 0;          // the least that a solver's update moves
  MachinePeak peak;

  // Returns the times of a solver's iteration, or of forward and backward without a solver.
  const TimingSamples& Iteration() const { return step.empty() ? pass : step; }
  // Returns the time of a solver's update: a whole iteration less its passes; at least 0.
  double UpdateMs() const;
};

// What to measure, and with which weights.
struct ProfileOptions {
  int iterations = 10;
  std::vector<std::string> weights;  // files to load first
  BufferReuse memory = BufferReuse::kShared;
  // Measure the machine's peak as well, before and after the net. It is raised to what a layer
  // reached, since a peak measured while other programs run is too low.
  bool peak = false;
  // Called after the measurement with the net (of a solver: its training net).
  std::function<void(const Net& net, const NetProfile& measured)> inspect;
};

// Builds the net of `state`, for training in phase TRAIN, and times passes, and passes with a clock
// around every layer, in turns. In phase TEST a pass has no backward part. Logs the lines of `caffe
// time`.
NetProfile ProfileModel(const NetSpec& spec, const caffe::NetState& state, const Device& device,
                        const ProfileOptions& options = {});

// Measures the training net of a solver as ProfileModel does, without tests and snapshots, and
// times whole iterations as well.
NetProfile ProfileSolver(SolverSpec spec, const Device& device, const ProfileOptions& options = {});

// Makes the solver run plain synchronous iterations, at least `iterations`: no tests, no
// snapshots, no display.
SolverSpec WithoutTestsAndSnapshots(SolverSpec spec, int iterations);

}  // namespace trainer

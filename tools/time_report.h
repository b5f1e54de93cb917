#pragma once
// What `trainer time` measured, and how it is told: Caffe's log lines, tables, JSON.

#include <optional>
#include <string>
#include <vector>

#include "stopwatch.h"
#include "trainer/backend/peak.h"
#include "trainer/base/text/json.h"
#include "trainer/net/net.h"

namespace trainer {

struct LayerTimes {
  Samples forward, backward;
  // Kernels, copies and fills that it queues on a device that records; empty: unknown.
  std::optional<int> forward_operations, backward_operations;
};

struct Times {
  std::vector<LayerTimes> layers;
  Samples forward, backward;  // all layers, one by one
  Samples pass;               // forward and backward with no clock between the layers
  Samples step;               // a solver's whole iteration; empty without a solver
  double wait_ms = 0;         // per pass, for data
  size_t update_bytes = 0;    // that a solver's update moves at least
  MachinePeak peak;

  // A solver's iteration, or forward and backward where there is no solver.
  const Samples& Iteration() const { return step.empty() ? pass : step; }
  double UpdateMs() const { return std::max(0.0, step.Median() - pass.Median()); }
};

// The lines that readers of Caffe's log know.
void LogTimes(const Net& net, const Times& times, int iterations);

// The tables for people.
std::string TimesToText(const Net& net, const Times& times);

// All figures for programs. A rate is null where nothing is counted or nothing was measured.
Json TimesToJson(const Net& net, const Times& times, int iterations);

}  // namespace trainer

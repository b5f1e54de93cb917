#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/monitor/observer.h"

namespace trainer {

// A layer of the net as the graph shows it: blobs by name.
struct NetLayer {
  std::string name, type;
  std::vector<std::string> inputs, outputs;
};

// A field of the solver that is set: "base_lr", 0.01.
struct Setting {
  std::string name, value;
  bool is_number = false;
};

// The constant facts of a run.
struct RunFacts {
  std::vector<NetLayer> layers;
  std::vector<Setting> settings;
  std::string solver, net;           // prototxt, for people
  std::vector<std::string> metrics;  // outputs of tests: "test0/accuracy"
};

// Makes an observer that writes TensorBoard's event file of this start: scalars; histograms,
// filters and the first images at the iterations at which the solver shows them; the graph,
// settings and texts. It also writes filters.png and images.png.
std::unique_ptr<TrainingObserver> MakeEventsObserver(const std::string& folder,
                                                     const RunFacts& facts);

}  // namespace trainer

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Names a net with an Input layer and its weights, a pack of both, or a run.
struct PredictionTargetOptions {
  NetSource model = {};                       // without a file for a run, whose solver it changes
  std::vector<std::string> weights = {};      // of a run: instead of its own
  std::string run = "";                       // folder
  std::optional<int> batch = std::nullopt;    // images per pass; by default the net's, of a run 32
  std::optional<Shape> shape = std::nullopt;  // of an image, for a run whose data is not there
  std::string verb = "predict";               // for messages
};

// The net for predictions and what belongs to it.
struct PredictionTarget {
  NetSpec net;
  caffe::NetState state;
  std::vector<std::string> weights;
  // For ReadClassNames; "" for a net without a pack or a run, or if there are no names.
  std::string class_names;
};

// Reads the net that the options name. For a run, makes the net for predictions from its test net,
// or from its training net if it has no tests, as `trainer deploy` does. ChooseRunWeights chooses
// the weights of the run. The class names are the names of the folders that the run read its images
// from, or the lines of the labels.txt next to its data. Throws kUsage if options are missing or
// contradict each other, and as RequireFiles, LoadNet, UsePack, LoadSolver, ExportNet and
// ChooseRunWeights.
PredictionTarget ResolvePredictionTarget(const PredictionTargetOptions& options);

}  // namespace trainer

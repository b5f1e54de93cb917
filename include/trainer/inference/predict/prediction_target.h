#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Names what predicts: a net with an Input layer and its weights, a pack of both, or a run.
struct PredictionTargetOptions {
  NetSource model = {};                       // for a run: no file, only changes of the solver
  std::vector<std::string> weights = {};      // for a run, replaces the run's weights
  std::string run = "";                       // folder of the run
  std::optional<int> batch = std::nullopt;    // images per pass; default: the net's, 32 for a run
  std::optional<Shape> shape = std::nullopt;  // shape of an image, if a run's data is missing
  std::string verb = "predict";               // for messages
};

// Holds the net for predictions, its weights and its class names.
struct PredictionTarget {
  NetSpec net;
  caffe::NetState state;
  std::vector<std::string> weights;
  // A file or folder with the class names. It is "" for a net without a pack or a run, or if the
  // class names are unknown.
  std::string class_names;
};

// Reads the net that the options name. For a run, derives the net for predictions from its test
// net, or from its training net if it has no tests, as `trainer deploy` does. ChooseRunWeights
// chooses the weights of the run. The class names are the names of the folders from which the run
// read its images, or the lines of the labels.txt next to its data. Throws kUsage if options are
// missing or contradict each other, and as RequireFiles, LoadNet, UsePack, LoadSolver, ExportNet
// and ChooseRunWeights do.
PredictionTarget ResolvePredictionTarget(const PredictionTargetOptions& options);

}  // namespace trainer

#pragma once

#include <string>
#include <vector>

#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/image_paths.h"

namespace trainer {

// How the answers of `trainer predict` are shown.
struct PredictionRunOptions {
  std::string out = {};    // a .csv, .jsonl or .npz file; "": the answers are printed
  bool continues = false;  // continue `out`, a .csv or .jsonl file, after its last complete row
  bool json = false;       // print JSON
  int top = 5;             // classes per image
  std::vector<std::string> names = {};  // of the classes; empty: classes are numbers
};

// Throws kUsage for options that contradict each other and for a name of `out` in no known format.
void CheckPredictionOptions(const PredictionRunOptions& options);

// Classifies all images, shows the answers, and logs the images per second. An image that cannot be
// read is told on stderr. Returns the exit code of the first such image of all rows of `out`, or 0.
// Throws as Classifier::Run, PredictionFile and OpenArrayWriter do.
int RunPredictions(Classifier& classifier, ImagePaths& paths, const PredictionRunOptions& options);

}  // namespace trainer

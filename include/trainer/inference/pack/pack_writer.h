#pragma once

#include <string>

#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/prediction_target.h"

namespace trainer {

// What goes into a pack.
struct PackOptions {
  PredictionTargetOptions target = {};  // a deploy net and its weights, or a run
  ImageInputFlags images = {};          // override the comment of the net's file
  std::string labels = "";              // for ReadClassNames; "": the labels of the run
  std::string out = "";
};

// Writes a pack, which OpenPack reads. Equal options and files give equal bytes. Returns a line for
// the user. Throws as ResolvePredictionTarget, InferenceNet and MergeImageFlags do, kConfig for a
// net without an Input layer, kData if a layer of the net has no weights or the names of the
// classes do not fit, and as WriteSealedTar does.
std::string WriteModelPack(const PackOptions& options);

}  // namespace trainer

#pragma once

#include <string>

#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/prediction_target.h"

namespace trainer {

// Says what a pack contains.
struct PackOptions {
  PredictionTargetOptions target = {};  // a deploy net and its weights, or a run
  ImageInputFlags images = {};          // override the comment in the net's file
  std::string labels = "";              // for ReadClassNames; "" takes the run's labels
  std::string out = "";
};

// Writes a pack, which OpenPack reads. Equal options and files give equal bytes. Returns a line for
// the user. Throws kConfig for a net without an Input layer; kData if a layer of the net has no
// weights or the class names do not fit; and as ResolvePredictionTarget, InferenceNet,
// MergeImageFlags and WriteSealedTar do.
std::string WriteModelPack(const PackOptions& options);

}  // namespace trainer

#pragma once

#include <string>
#include <vector>

#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/image_preprocessor.h"
#include "trainer/monitor/inspection_page.h"

namespace trainer {

// Says what to inspect and how to show it.
struct InspectionOptions {
  std::string image;                  // path of the image file
  std::string output = "";            // see ChooseScores
  PreprocessOptions preprocess = {};  // without `oversample`
  int top = 5;                        // number of answers
  // Selects the layers whose outputs are shown, see NamePattern. An empty list selects all layers.
  std::vector<std::string> layers = {};
  std::vector<std::string> names = {};  // names of the classes; empty: shows their indices
};

// Runs the net on one image and draws what it computes: the output of every layer, the filters of
// the first layers, the best answers, and the saliency, i.e. how strongly each pixel changes the
// score of the best answer. Requires BufferReuse::kSeparate, loaded weights, and a batch of one
// image. Throws kUsage if an item of `layers` selects no layer, and as ChooseScores,
// ImagePreprocessor and Net do.
InspectionPage Inspect(InferenceNet& net, const InspectionOptions& options);

}  // namespace trainer

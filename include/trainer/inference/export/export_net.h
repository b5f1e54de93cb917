#pragma once

#include <optional>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/inference/export/inference_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Which blobs to keep, and the shape of the input.
struct ExportOptions {
  InferenceSpecOptions spec = {};
  int batch = 1;  // items per pass
  std::optional<Shape> shape =
      std::nullopt;  // of one item; without it the net's data gives the shape
};

// A net for predictions, as `trainer deploy` writes it.
struct ExportedNet {
  caffe::NetParameter net;
  std::string preprocessing;  // comment that says how to preprocess images; "": the net reads none
};

// Parses "3,227,227", the value of --shape. Throws kUsage if a length is not a positive number.
Shape ParseItemShape(const std::string& text);

// Converts `net` by MakeInferenceSpec, and sets the shapes of its Input layers. A net without data
// for tests gets the input of its training data. `device` plans the training net for the shapes.
// Throws as MakeInferenceSpec, and as Net if a shape is needed and the data is not there.
ExportedNet ExportNet(const NetSpec& net, const Device& device, const ExportOptions& options);

// Returns the prototxt, with the comment on preprocessing in the first line.
std::string ToText(const ExportedNet& exported);

}  // namespace trainer

#pragma once

#include <string>

#include "trainer/cli/flag_set.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// The flags with which `trainer export` writes a model in the format ONNX.
struct OnnxFlags {
  OnnxExportOptions options;
  std::string batch = "free", labels, preprocess, shape;
  ImageInputFlags images;
};

// Declares --opset, --batch, --output, --labels, --preprocess, --shape, those that say how images
// are prepared, and those that change the net.
void DeclareOnnx(FlagSet& flags, OnnxFlags* onnx, NetSource* net);

// Throws kUsage if one of these flags is given, because the file `out` gets weights alone.
void RefuseOnnxFlags(const FlagSet& flags, const std::string& out);

// Writes the net and the weights that `target` names to the file `out`, reads it back, and logs
// what was written and by how much it differs from the net. Throws kUsage for values of flags, as
// ResolvePredictionTarget, ExportOnnx, ReadClassNames and WriteOnnx.
void ExportOnnxFile(OnnxFlags flags, PredictionTargetOptions target, const std::string& out);

}  // namespace trainer

#pragma once

#include <string>

#include "trainer/cli/flag_set.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// Holds the flags with which `trainer export` writes a model in the format ONNX.
struct OnnxFlags {
  OnnxExportOptions options;
  std::string batch = "free", labels, preprocess, shape;
  ImageInputFlags images;
};

// Declares --opset, --batch, --output, --labels, --preprocess, --shape, the flags that say how
// images are prepared, and the flags that change the net.
void DeclareOnnx(FlagSet& flags, OnnxFlags* onnx, NetSource* net);

// Throws kUsage if one of these flags is given, because the file `out` only holds weights.
void RefuseOnnxFlags(const FlagSet& flags, const std::string& out);

// Writes the net and the weights that `target` names to the file `out`, reads the file back, and
// logs what was written and by how much its outputs differ from the net's. Throws kUsage for
// invalid flag values, and as ResolvePredictionTarget, ExportOnnx, ReadClassNames and WriteOnnx do.
void ExportOnnxFile(OnnxFlags flags, PredictionTargetOptions target, const std::string& out);

}  // namespace trainer

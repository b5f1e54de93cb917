#pragma once

#include <optional>
#include <string>

#include "trainer/onnx/fine_tune.h"

namespace trainer {

// The values of the flags of `trainer import`.
struct ImportModelOptions {
  std::string model;         // the .onnx file
  std::string out, weights;  // the files to write
  std::string shape;         // "3,224,224", of one item; "": the model's
  std::optional<int> batch;  // items per pass; with `train`, of a training batch
  std::string pixels;  // "raw" or "torchvision"; "": raw, with `train` torchvision if possible
  bool train = false;  // also write a net and a solver that fine-tune the model
  FineTuneOptions tune;
  bool replace = false;
};

// Reads a model in the format ONNX and writes a net and its weights, and with `train` a net and a
// solver whose names follow from `out`: net_train.prototxt and net_solver.prototxt. Returns, for
// the user, a line for each file and output. Throws kUsage for options that contradict each other,
// kCannotCreate for a file that exists unless `replace` is set, and as ReadOnnx and ImportOnnx. No
// file is written if the model cannot be imported.
std::string ImportModel(const ImportModelOptions& options);

}  // namespace trainer

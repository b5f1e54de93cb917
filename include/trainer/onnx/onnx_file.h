#pragma once
// Files of models in the format ONNX.

#include <string>

#include "onnx.pb.h"

namespace trainer {

// Reads a model. The numbers of external files are not read here. Throws kNoInput, kNoPermission or
// kIo if the file cannot be read, and kData if it is not an ONNX model, or if it exceeds the limit
// of a protobuf file, 2 GiB - 1.
onnx::ModelProto ReadOnnx(const std::string& path);

}  // namespace trainer

#pragma once
// Reads model files in the format ONNX.

#include <string>

#include "onnx.pb.h"

namespace trainer {

// Reads a model, but not the numbers in its external files. Throws kNoInput, kNoPermission or kIo
// if the file cannot be read, and kData if it is not an ONNX model, or if it exceeds 2 GiB - 1, the
// limit of a protobuf file.
onnx::ModelProto ReadOnnx(const std::string& path);

}  // namespace trainer

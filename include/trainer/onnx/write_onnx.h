#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onnx.pb.h"

namespace trainer {

struct OnnxWriteOptions {
  // The size in bytes above which the weights are written to a second file, `<path>.data`. The
  // default is the limit of a protobuf file.
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
};

// Writes the model, and moves the weights out of `model` if they are written to the second file.
// Returns the names of the files that it wrote. Throws as AtomicFile does.
std::vector<std::string> WriteOnnx(onnx::ModelProto* model, const std::string& path,
                                   const OnnxWriteOptions& options = {});

}  // namespace trainer

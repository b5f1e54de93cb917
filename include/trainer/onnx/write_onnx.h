#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onnx.pb.h"

namespace trainer {

struct OnnxWriteOptions {
  // A larger model has its weights in a second file, `<path>.data`. The default is the limit of a
  // protobuf file.
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
};

// Writes the model; moves weights out of it if they go to the second file. Returns the names of the
// files that it wrote. Throws as AtomicFile.
std::vector<std::string> WriteOnnx(onnx::ModelProto* model, const std::string& path,
                                   const OnnxWriteOptions& options = {});

}  // namespace trainer

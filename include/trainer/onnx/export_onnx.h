#pragma once
// From a net with weights to a model in the format ONNX.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// How pixels from 0 to 255 become the values of an input (N, C, H, W): (p * factor - mean) * scale.
struct OnnxPreprocessing {
  float factor = 1, scale = 1;
  std::vector<float> mean = {};  // (C) or (C, H, W); empty: 0
  bool rgb = false;              // the file's input has red first, the net's blue
};

struct OnnxExportOptions {
  static constexpr int kMinOpset = 13, kMaxOpset = 18;
  int opset = 17;
  bool fixed_batch = false;               // keep the batch size of the net
  std::vector<std::string> outputs = {};  // blobs; empty: the outputs of the net
  // Its nodes are the first of the graph; only for a net with one input.
  std::optional<OnnxPreprocessing> preprocessing = std::nullopt;
};

struct OnnxExport {
  onnx::ModelProto model;
  std::vector<std::string> notes;  // what a user should know, one sentence each
};

// Converts `net`, which has its weights and keeps every value after a pass
// (BufferReuse::kSeparate). `spec` is its file. Runs a pass if the net has values that depend on
// shapes only. Throws kUsage for an output that does not exist, and kConfig at the line of a layer
// or field that cannot be expressed.
OnnxExport ExportOnnx(const NetSpec& spec, Net& net, const OnnxExportOptions& options);

}  // namespace trainer

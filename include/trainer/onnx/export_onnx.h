#pragma once
// Converts a net with weights to a model in the format ONNX.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// Describes how a pixel p in [0, 255] becomes a value of an input (N, C, H, W): (p * factor - mean)
// * scale.
struct OnnxPreprocessing {
  float factor = 1, scale = 1;
  std::vector<float> mean = {};  // shape (C) or (C, H, W); empty: 0
  bool rgb = false;              // the file's input has red first, the net's input has blue first
};

struct OnnxExportOptions {
  static constexpr int kMinOpset = 13, kMaxOpset = 18;
  int opset = 17;
  bool fixed_batch = false;               // keep the batch size of the net
  std::vector<std::string> outputs = {};  // blobs; empty: the outputs of the net
  // If set, the graph begins with the nodes of this preprocessing. The net must have one input.
  std::optional<OnnxPreprocessing> preprocessing = std::nullopt;
};

struct OnnxExport {
  onnx::ModelProto model;
  std::vector<std::string> notes;  // what a user should know, one sentence each
};

// Converts `net`, which was compiled from `spec`, has its weights and keeps every value after a
// pass (BufferReuse::kSeparate). Runs a pass if the net has values that depend on shapes only.
// Throws kUsage for an output that does not exist, and kConfig at the line of a layer or field that
// ONNX cannot express.
OnnxExport ExportOnnx(const NetSpec& spec, Net& net, const OnnxExportOptions& options);

}  // namespace trainer

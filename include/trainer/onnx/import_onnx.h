#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net.pb.h"
#include "onnx.pb.h"

namespace trainer {

// Gives the sizes that a model may leave free.
struct OnnxImportOptions {
  // Length of the first axis of an input. The model must leave it free; default: the model's, or 1.
  std::optional<int64_t> batch = std::nullopt;
  // Maps the name of an input to the shape of one item, without the batch. The name "" means all
  // inputs. This shape replaces the sizes in the model.
  std::map<std::string, std::vector<int64_t>> shapes = {};
};

// Holds a net that was made from a model.
struct ImportedNet {
  caffe::NetParameter net;      // without weights, with an Input layer for each input
  caffe::NetParameter weights;  // names, types and blobs of the layers that have weights
  std::map<std::string, std::string> outputs;  // maps each output of the model to its blob
  std::string first_output;                    // the blob of the model's first output
  std::vector<std::string> notes;              // messages for the user, one sentence each
};

// Converts a model to a net that computes the same outputs. The importer folds constants, replaces
// each group of nodes that forms one layer by that layer, and names layers after the nodes. `path`
// is the model's file: messages begin with it, and external data is in its folder. Throws kData,
// naming the node and its operator, for a model that is not valid and for a model that no net
// expresses; kUsage if a size is free and the options do not give it; kNoInput and similar errors
// for external data.
ImportedNet ImportOnnx(const onnx::ModelProto& model, const std::string& path,
                       const OnnxImportOptions& options = {});

}  // namespace trainer

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "net.pb.h"
#include "onnx.pb.h"

namespace trainer {

// Sizes that a model may leave free.
struct OnnxImportOptions {
  int64_t batch = 1;  // a free first axis of an input
  // The shape of an item, without the batch, by the input's name; "" is for all inputs. It replaces
  // the sizes of the model.
  std::map<std::string, std::vector<int64_t>> shapes = {};
};

// A net that was made from a model.
struct ImportedNet {
  caffe::NetParameter net;      // without weights, with an Input layer for each input
  caffe::NetParameter weights;  // names, types and blobs of the layers that have weights
  std::map<std::string, std::string> outputs;  // the blob of each output of the model, by its name
  std::string first_output;                    // the blob of the model's first output
  std::vector<std::string> notes;              // for the user
};

// Converts a model to a net that computes the same: constants are folded, groups of nodes that are
// one layer here become that layer, and the names come from the nodes. `path` is the model's file:
// messages begin with it, and external data is in its folder. Throws kData, naming the node and its
// operator, for a model that is not valid and for one that no net expresses; kUsage if a size is
// free and the options do not give it; kNoInput and similar errors for external data.
ImportedNet ImportOnnx(const onnx::ModelProto& model, const std::string& path,
                       const OnnxImportOptions& options = {});

}  // namespace trainer

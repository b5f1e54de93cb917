#pragma once
// Tables that say which tensor of another program's file each blob of a net is. A line names a blob
// and its tensor; '#' begins a comment:
//   conv1.0      conv1.weight
//   bn_conv1.2   =1                                          a number, which the file does not have
//   fc7.0[1000,1280,1,1] classifier.1.weight[1000,1280]      shapes, where they differ

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trainer {

// Holds a line of a table.
struct TensorName {
  int line = 0;
  int blob = 0;                    // index in the layer
  std::vector<int64_t> blob_dims;  // empty: equal to the tensor's
  std::string tensor;              // "" if the line gives a number
  std::vector<int64_t> tensor_dims;
  float number = 0;
};

// Holds the lines of a layer, one line per blob, in the order of the blobs.
struct LayerTensors {
  std::string layer;
  std::vector<TensorName> blobs;
};

// Reads a table. Throws kData with the line if a word is not understood, a blob is named twice, or
// a layer lacks one of its first blobs; and as ReadFile does.
std::vector<LayerTensors> ReadTensorNames(const std::string& path);

// Returns the layer and the index in the name of a blob in files of tensors, e.g. "conv1.0";
// nothing for another text.
std::optional<std::pair<std::string, int>> ParseBlobName(const std::string& name);

// Throws kData with `place` unless the indices are 0, 1, 2, ...
void RequireAllBlobs(const std::string& layer, std::span<const int> indices,
                     const std::string& place);

}  // namespace trainer

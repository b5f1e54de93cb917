#pragma once
// Saves and loads the weights of a net by layer name.

#include <functional>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// Names of layers: set from a weights file, missing in it, and in it but unused by the net.
struct LoadReport {
  // A layer that was not loaded. `sizes` is "1000 -> 10" if its size in the file differs, "" if
  // CopyOptions::keeps named it.
  struct Kept {
    std::string layer, sizes;
  };
  std::vector<std::string> loaded, missing, unused;
  std::vector<Kept> kept;  // not among the others
};

// Which layers CopyWeights may leave as they are although the file has a layer of their name.
struct CopyOptions {
  std::function<bool(const std::string& layer)> keeps;  // null: none
  std::string may_differ;  // a layer that keeps its values if its size in the file differs; or ""
  bool has_reset = false;  // refusals may advise --reset
};

// Returns the net with its weights as in a caffemodel (and gradients, with `diff`).
caffe::NetParameter WeightsOf(const Net& net, bool diff = false);
// Writes them into *proto and reuses its memory if it held the same net before.
void WeightsTo(const Net& net, bool diff, caffe::NetParameter* proto);
// Exports a device array of a parameter's size (its weights or optimizer state) as a blob of a
// file. `blob` must be empty but may have memory.
void ExportBlob(const ParamStore& store, const Param& param, const float* device_values,
                caffe::BlobProto* blob);
// Copies weights by layer name. Blobs must have the same number and shape (old 4-D shapes may have
// leading ones). Throws kData naming both shapes, the layer and the file.
LoadReport CopyWeights(const caffe::NetParameter& source, const std::string& file, Net& net,
                       const CopyOptions& options = {});

// Returns why `source` is not exactly the weights of this net: layers and blobs that only one of
// the two has, and different shapes; one sentence each.
std::vector<std::string> WeightMismatches(const caffe::NetParameter& source,
                                          const std::string& file, const Net& net);

}  // namespace trainer

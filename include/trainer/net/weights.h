#pragma once
// Weights in and out of a net, by layer name.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// What loading a weights file did, by layer name.
struct LoadReport {
  std::vector<std::string> loaded, missing, unused;
};

// The net with its weights as a caffemodel holds them (and gradients, with `diff`).
caffe::NetParameter WeightsOf(const Net& net, bool diff = false);
// The same into a message whose memory is used again, where it held such a net before.
void WeightsTo(const Net& net, bool diff, caffe::NetParameter* proto);
// What is as large as a parameter (its weights, a rule's history of it) and lies on the device, as
// a blob of a file. `blob` is empty but may have memory.
void ExportBlob(const ParamStore& store, const Param& param, const float* device_values,
                caffe::BlobProto* blob);
// Copies weights by layer name. Blobs must match in number and shape (old 4-D shapes may have
// leading ones); throws kData naming both shapes, the layer and the file.
LoadReport CopyWeights(const caffe::NetParameter& source, const std::string& file, Net& net);

// What keeps `source` from being the weights of this net and of nothing else: layers and blobs that
// only one of both has, and other shapes; one sentence each.
std::vector<std::string> WeightMismatches(const caffe::NetParameter& source,
                                          const std::string& file, const Net& net);

}  // namespace trainer

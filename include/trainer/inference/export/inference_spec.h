#pragma once

#include <string>
#include <vector>

#include "net.pb.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// Which layers to convert, and which blobs to keep.
struct InferenceSpecOptions {
  caffe::NetState state = {};             // selects the layers to convert: phase TEST
  std::vector<std::string> outputs = {};  // blobs to keep; empty: the input of the main loss
};

// Converts a training net to the net that computes its predictions. Data layers become Input layers
// without shapes. SoftmaxWithLoss and InfogainLoss become a Softmax named "prob",
// SigmoidCrossEntropyLoss becomes a Sigmoid. Other losses, Accuracy, Silence, and layers that no
// output depends on are removed. The main loss has the largest loss_weight; of equal ones it is the
// last. Fillers, lr_mult, decay_mult and loss weights are removed; names of shared parameters stay.
// Throws kConfig if no layer remains or an output does not exist.
caffe::NetParameter MakeInferenceSpec(const NetSpec& net, const InferenceSpecOptions& options);

// Returns the net, where the data layers of training are also in the TEST net if that has no data
// of its own, as in nets that are trained without tests. `net` must outlive the result.
NetSpec WithDataForTests(const NetSpec& net, const caffe::NetState& state);

// Returns the tops of the Input layers that have no shape yet.
std::vector<std::string> InputsWithoutShape(const caffe::NetParameter& net);

}  // namespace trainer

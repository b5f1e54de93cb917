#pragma once
// The net that answers, made of the net that learns.

#include <map>
#include <string>
#include <vector>

#include "net.pb.h"
#include "trainer/config/net_spec.h"

namespace trainer {

struct DeployOptions {
  caffe::NetState state;             // which layers to start from: phase TEST
  std::vector<std::string> outputs;  // blobs to keep; none: what the heaviest loss reads
};

// The TEST net less what only training needs. Data layers become Input layers, which are left
// without shapes; SoftmaxWithLoss and InfogainLoss become a Softmax named "prob",
// SigmoidCrossEntropyLoss a Sigmoid; other losses, Accuracy, Silence and whatever leads to no
// output go. Of several losses the one with the greatest weight counts, the last of equals.
// Fillers, rates, rules and loss weights are cleared; share names of parameters stay. Throws
// kConfig when nothing remains or an output is not there.
caffe::NetParameter MakeDeploy(const NetSpec& net, const DeployOptions& options);

// The tops of `deploy`'s Input layers that have no shape yet.
std::vector<std::string> InputsWithoutShape(const caffe::NetParameter& deploy);

}  // namespace trainer

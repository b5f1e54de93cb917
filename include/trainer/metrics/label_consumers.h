#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/net/graph.h"

namespace trainer {

// A layer that compares scores with class labels: Accuracy, SoftmaxWithLoss, InfogainLoss,
// HingeLoss, MultinomialLogisticLoss.
struct LabelConsumer {
  // A layer and one of its outputs.
  struct Producer {
    int layer = -1, top = 0;
    bool operator==(const Producer&) const = default;
  };

  int layer = 0;               // index of the layer in the net
  std::string scores, labels;  // bottom blobs, possibly outputs of Split layers
  int axis = 1;                // axis of `scores` that counts the classes
  int64_t classes = 0;
  bool has_ignore = false;
  float ignore = 0;  // label value that is not counted, if has_ignore

  Producer scores_from;  // the layer that produces the scores; Split layers in between are skipped
  // Index of the layer without inputs that produces the labels, and the output number there. Split
  // layers in between are skipped. -1 if the labels are computed from other blobs.
  int source = -1;
  int source_top = 0;

  // Returns whether the label is a class or is ignored.
  bool Takes(float label) const;
  // Returns the class of the label, or -1 if it is ignored or not a class.
  int ClassOf(float label) const;
};

// Returns the label consumers in the order of the layers.
std::vector<LabelConsumer> FindLabelConsumers(const Graph& graph);

}  // namespace trainer

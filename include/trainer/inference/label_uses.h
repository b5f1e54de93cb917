#pragma once
// Where a net compares scores with class labels.

#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A layer that takes scores and labels: Accuracy, SoftmaxWithLoss, InfogainLoss, HingeLoss,
// MultinomialLogisticLoss.
struct LabelUse {
  int layer = 0;               // its number in the net
  std::string scores, labels;  // its bottoms, perhaps of Split layers
  int axis = 1;                // the axis of the classes in the scores
  int64_t classes = 0;
  bool has_ignore = false;
  float ignore = 0;  // a label that does not count

  // The layer without inputs whose output the labels are, past Split layers; -1 when something
  // computes them.
  int source = -1;
  int source_top = 0;

  // Whether a label is a class or is ignored.
  bool Takes(float label) const;
};

// In the order of the layers. The net may be planned only.
std::vector<LabelUse> LabelUses(const Net& net);

}  // namespace trainer

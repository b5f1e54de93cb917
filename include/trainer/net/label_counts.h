#pragma once

#include "trainer/layers/label_count.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns the label count of the net's only loss. Returns null if the count does not vary, if
// another loss or another source of gradients exists, whose gradients must not be scaled by this
// count, or if the size of the loss layer's input may change.
LabelCount* OnlyLabelCount(const Net& net);

// Warns for each loss whose label count varies that an update is the mean over `passes` passes and
// differs from the update of one batch with all their records.
void WarnOfLabelCounts(const Net& net, int passes);

}  // namespace trainer

#pragma once
// Class labels, as the losses and Accuracy read them: one per row of the scores along their class
// axis.

#include "trainer/layers/label_rule.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Refuses labels (input 1) that are not one per row of the scores (input 0) along `axis`, or whose
// memory order differs from that of the rows.
void RequireLabels(const PlanContext& plan, const LayerSpec& spec, int axis);

// Refuses what is not scores (N, C) (input 0; further axes are part of the classes and may only be
// of length 1 when it is an image) with N labels (input 1).
void RequireItemScores(const PlanContext& plan, const LayerSpec& spec);

// Throws kData (ItemError) for the first bad label among `labels`, which lie on the host: the
// value, the item of the batch and the classes there are.
[[noreturn]] void ThrowBadLabel(const LayerSpec& spec, const ConstTensor& labels,
                                const LabelRule& rule);

}  // namespace trainer

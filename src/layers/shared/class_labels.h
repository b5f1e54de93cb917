#pragma once
// Class labels, as the losses and Accuracy read them: one per row of the scores along their class
// axis.

#include "trainer/layers/label_rule.h"
#include "trainer/layers/layer.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {

// Refuses labels as input 0 and scores, with the classes along `axis`, as input 1: bottoms in the
// wrong order.
void RefuseSwappedBottoms(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Where the label of each row of scores is in memory. Labels may have any shape of the right count,
// as in Caffe: both are compared in row-major order, and each has its own order in memory.
struct LabelOrder {
  NchwOrder rows, labels;
  bool same = true;

  HD int64_t At(int64_t row) const { return same ? row : labels.Memory(rows.Plain(row)); }
};

// Refuses labels (input 1) that are not one per row of the scores (input 0) along `axis`.
LabelOrder RequireLabels(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Refuses what is not scores (N, C) (input 0; further axes are part of the classes and may only be
// of length 1 when it is an image) with N labels (input 1).
void RequireItemScores(const SetupContext& ctx, const LayerSpec& spec);

// Reports the first bad label among input 1 to run.input_error().
void ReportBadLabels(const RunContext& run, const LabelRule& rule);

// Throws kData (RecordError) for element `at` of labels of shape `labels`: its value, the item of
// the batch and the classes there are. The answer to ReportBadLabels.
[[noreturn]] void ThrowBadLabel(const LayerSpec& spec, const Shape& labels, const LabelRule& rule,
                                int64_t at, float label);

}  // namespace trainer

#pragma once
// Class labels of the losses and Accuracy: one label per row of the scores along their class axis.

#include "trainer/layers/label_rule.h"
#include "trainer/layers/layer.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {

// Refuses bottoms in the wrong order: labels as input 0, and scores with the classes along `axis`
// as input 1.
void RefuseSwappedBottoms(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Finds the label of each row of scores in memory. As in Caffe, labels may have any shape with the
// right count: both are compared in row-major order, and each has its own order in memory.
struct LabelOrder {
  NchwOrder rows, labels;
  bool same = true;

  HD int64_t At(int64_t row) const { return same ? row : labels.Memory(rows.Plain(row)); }
};

// Refuses labels (input 1) unless there is one per row of the scores (input 0) along `axis`.
LabelOrder RequireLabels(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Refuses inputs other than scores (N, C) (input 0) and N labels (input 1). Further axes of the
// scores are part of the classes; in an image they must have length 1.
void RequireItemScores(const SetupContext& ctx, const LayerSpec& spec);

// Reports the first bad label among input 1 to run.input_error().
void ReportBadLabels(const RunContext& run, const LabelRule& rule);

// Throws kData (RecordError) for element `at` of labels of shape `labels`, with its value, the item
// of the batch and the number of classes. Called after ReportBadLabels found it.
[[noreturn]] void ThrowBadLabel(const LayerSpec& spec, const Shape& labels, const LabelRule& rule,
                                int64_t at, float label);

}  // namespace trainer

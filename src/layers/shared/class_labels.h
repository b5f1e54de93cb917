#pragma once
// Class labels of the losses and Accuracy: one label per row of the scores along their class axis.

#include "trainer/layers/label_rule.h"
#include "trainer/layers/layer.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {

// Throws kConfig if the bottoms are in the wrong order, i.e. if input 0 has one number per row of
// input 1 along `axis`. Other shapes that do not fit are left to RequireLabels.
void RefuseSwappedBottoms(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Throws kConfig for scores of a single class on `axis`, whose softmax is always 1.
void RefuseOneClass(const LayerSpec& spec, const Shape& scores, int axis);

// Finds the label of each row of scores in memory. As in Caffe, labels may have any shape with the
// right count: both are compared in row-major order, and each has its own order in memory.
struct LabelOrder {
  NchwOrder rows, labels;
  bool same = true;

  // Returns the place in memory of the label of `row`, a row's number in the scores' memory order.
  HD int64_t At(int64_t row) const { return same ? row : labels.Memory(rows.Plain(row)); }
};

// Refuses labels (input 1) unless there is one per row of the scores (input 0) along `axis`. The
// message has advice for labels of a sequence and for those of mixup and cutmix.
LabelOrder RequireLabels(const SetupContext& ctx, const LayerSpec& spec, int axis);

// Refuses inputs other than scores (N, C) (input 0) and N labels (input 1). Further axes of the
// scores are part of the classes; in an image they must have length 1.
void RequireItemScores(const SetupContext& ctx, const LayerSpec& spec);

// Reports the first label of input 1 that is neither a class nor ignored to run.input_error().
void ReportBadLabels(const RunContext& run, const LabelRule& rule);

// Throws kData (RecordError) for `label`, element `at` of labels of shape `labels`, which
// ReportBadLabels found. The message has the label, the item of the batch and the number of
// classes.
[[noreturn]] void ThrowBadLabel(const LayerSpec& spec, const Shape& labels, const LabelRule& rule,
                                int64_t at, float label);

// Throws kData (RecordError) for row `at` of class shares (input 1) whose sum is `sum`, not 1. An
// infinite sum means that a share is below 0 or not finite. Each item has `per_item` rows.
[[noreturn]] void ThrowBadShares(const LayerSpec& spec, int64_t per_item, int64_t at, float sum);

}  // namespace trainer

#include "shared/class_labels.h"

#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/record_error.h"

namespace trainer {
namespace {

// Reports label i if it is neither a class nor ignored.
struct BadLabel {
  const float* label;
  LabelRule rule;
  InputErrorFlag fault;
  HD void operator()(int64_t i) const {
    if (rule.Read(label[i]) == kBadLabel) fault.Report(i, label[i]);
  }
};

}  // namespace

void RefuseSwappedBottoms(const SetupContext& ctx, const LayerSpec& spec, int axis) {
  const Shape &first = ctx.Input(0), &second = ctx.Input(1);
  const int classes = second.CanonicalAxis(axis);
  if (classes < 0 || second.Count() <= first.Count() ||
      second.With(classes, 1).Count() != first.Count()) {
    return;
  }
  const auto& names = spec.proto().bottom();
  spec.Fail("bottom",
            Join("the labels must be the second bottom, but '", names[0], "' of shape ",
                 Dims(first), " is the first and the scores '", names[1], "' of shape ",
                 Dims(second), " are the second; swap the two bottoms"),
            0);
}

LabelOrder RequireLabels(const SetupContext& ctx, const LayerSpec& spec, int axis) {
  const Shape &scores = ctx.Input(0), &labels = ctx.Input(1);
  const auto& names = spec.proto().bottom();
  const Shape wish = scores.With(axis, 1);
  if (labels.Count() != wish.Count()) {
    spec.Fail(
        "bottom",
        Join("labels '", names[1], "' have shape ", Dims(labels), " but scores '", names[0],
             "' have ", Dims(scores), " with the classes on axis ", axis, ", which needs ",
             wish.Count(), wish.Count() == 1 ? " label" : " labels", ", e.g. shape ", Dims(wish)),
        1);
  }
  LabelOrder order{NchwOrder(wish), NchwOrder(labels)};
  order.same = labels == wish || (!IsNhwc(wish) && !IsNhwc(labels));
  return order;
}

void RequireItemScores(const SetupContext& ctx, const LayerSpec& spec) {
  RefuseSwappedBottoms(ctx, spec, 1);
  RequireRank(ctx, spec, 0, 2, Shape::kMaxAxes, "scores (N, C)");
  const Shape& scores = ctx.Input(0);
  if (IsNhwc(scores)) {
    spec.Fail("bottom",
              Join("bottom '", spec.proto().bottom(0), "' has shape ", Dims(scores),
                   ", but this layer needs scores (N, C): put a Flatten layer before it"),
              0);
  }
  if (ctx.Input(1).Count() != scores[0]) {
    spec.Fail("bottom",
              Join("labels '", spec.proto().bottom(1), "' have shape ", Dims(ctx.Input(1)),
                   " but scores '", spec.proto().bottom(0), "' have ", Dims(scores),
                   ", which needs ", scores[0], " labels"),
              1);
  }
}

void ReportBadLabels(const RunContext& run, const LabelRule& rule) {
  const ConstTensor& labels = run.Input(1);
  ForEach(run.device(), labels.Count(), BadLabel{labels.f32(), rule, run.input_error()});
}

void ThrowBadLabel(const LayerSpec& spec, const Shape& labels, const LabelRule& rule, int64_t at,
                   float label) {
  const int64_t items = labels.Rank() > 0 ? labels[0] : 1;
  const int64_t per_item = labels.Count() / items;
  const std::string where = per_item == 1
                                ? Join("item ", at)
                                : Join("item ", at / per_item, ", position ", at % per_item, ",");
  const bool finite = std::isfinite(label);
  try {
    spec.FailWith(ErrorCode::kData,
                  Join("label ", label, " of ", where, " of the batch is ",
                       finite ? "not a class: there are " : "not a finite number; there are ",
                       rule.classes, " classes, 0 to ", rule.classes - 1,
                       "; correct the labels, raise num_output of the layer that computes the "
                       "scores, or set ignore_label"));
  } catch (const Error& error) {
    throw RecordError(error, 1, at / per_item);
  }
}

}  // namespace trainer

#include "shared/class_labels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

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

// Returns "item 3", or "item 3, position 5," if each item has several rows or labels.
std::string PlaceInBatch(int64_t at, int64_t per_item) {
  if (per_item == 1) return Join("item ", at);
  return Join("item ", at / per_item, ", position ", at % per_item, ",");
}

// Returns the message with the axis of the classes, or "" for a type that has no such field.
std::string_view AxisParam(const std::string& type) {
  if (type == "Accuracy") return "accuracy_param";
  if (type == "InfogainLoss") return "infogain_loss_param";
  return type == "SoftmaxWithLoss" || type == "SoftmaxFocalLoss" ? "softmax_param" : "";
}

// Returns an axis of the scores, other than `axis`, without which they have the shape of the
// labels; or nothing.
std::optional<int> OtherClassAxis(const Shape& scores, const Shape& labels, int axis) {
  for (int other = scores.Rank(); --other > 0;) {
    std::vector<int64_t> dims(scores.dims().begin(), scores.dims().end());
    dims.erase(dims.begin() + other);
    const bool fits =
        std::equal(dims.begin(), dims.end(), labels.dims().begin(), labels.dims().end()) ||
        labels == scores.With(other, 1);
    if (other != axis && scores[other] > 1 && fits) return other;
  }
  return std::nullopt;
}

// Returns advice for labels of the wrong count. Such labels can belong to a sequence, or mixup and
// cutmix have made them class shares. Returns "" for other shapes.
std::string LabelAdvice(const LayerSpec& spec, const Shape& scores, const Shape& labels, int axis) {
  const std::string_view param = AxisParam(spec.type());
  if (const auto other = OtherClassAxis(scores, labels, axis); other && !param.empty()) {
    return Join("; if the classes are on axis ", *other, ", write ", param, " { axis: ", *other,
                " }");
  }
  if (labels.Rank() != 2 || labels[0] != scores[0] || labels[1] < 2) return "";
  constexpr std::string_view kShares =
      "; if mixup or cutmix of transform_param made these labels, ";
  if (spec.type() == "Accuracy") {
    return Join(kShares,
                "add include { phase: TEST } to this layer, because in TRAIN they are a "
                "share for each class");
  }
  if (spec.type() != "SoftmaxWithLoss") {
    return Join(kShares, "use SoftmaxWithLoss, which takes a share for each class, or remove both");
  }
  return labels[1] == scores[axis]
             ? Join(kShares, "put a Flatten layer before this one, so that both shapes are equal")
             : Join(kShares, "set mixup_classes: ", scores[axis], ", the number of scores");
}

}  // namespace

void RefuseOneClass(const LayerSpec& spec, const Shape& scores, int axis) {
  if (scores[axis] != 1) return;
  spec.Fail("bottom",
            Join("scores '", spec.proto().bottom(0), "' of shape ", Dims(scores),
                 " have one class on axis ", axis,
                 ", so its probability is always 1 and nothing is learned; compute one score per "
                 "class, i.e. 2 for two classes, or use SigmoidCrossEntropyLoss"),
            0);
}

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
    spec.Fail("bottom",
              Join("labels '", names[1], "' have shape ", Dims(labels), " but scores '", names[0],
                   "' have ", Dims(scores), " with the classes on axis ", axis, ", which needs ",
                   wish.Count(), wish.Count() == 1 ? " label" : " labels", ", e.g. shape ",
                   Dims(wish), LabelAdvice(spec, scores, labels, axis)),
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
  const bool finite = std::isfinite(label);
  try {
    spec.FailWith(ErrorCode::kData,
                  Join("label ", label, " of ", PlaceInBatch(at, per_item), " of the batch is ",
                       finite ? "not a class: there are " : "not a finite number; there are ",
                       rule.classes, " classes, 0 to ", rule.classes - 1,
                       "; correct the labels, raise num_output of the layer that computes the "
                       "scores, or set ignore_label"));
  } catch (const Error& error) {
    throw RecordError(error, 1, at / per_item);
  }
}

void ThrowBadShares(const LayerSpec& spec, int64_t per_item, int64_t at, float sum) {
  try {
    spec.FailWith(
        ErrorCode::kData,
        Join("the class shares in '", spec.proto().bottom(1), "' of ", PlaceInBatch(at, per_item),
             " of the batch ",
             std::isfinite(sum) ? Join("have the sum ", sum) : "include one below 0 or not finite",
             "; they must be 0 or more, with sum 1: divide each row by its sum, or use "
             "SigmoidCrossEntropyLoss if a record can have several classes"));
  } catch (const Error& error) {
    throw RecordError(error, 1, at / per_item);
  }
}

}  // namespace trainer

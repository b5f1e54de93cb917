#include <cmath>
#include <utility>

#include "loss/loss_normalizer.h"
#include "shared/checks.h"
#include "shared/class_labels.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kDiceLossParam[] = "dice_loss_param";
constexpr float kNoDiceTarget = -1;  // the target of a position that does not count

// Finds the target of each score: bottom 1 holds a class label per position, or targets from 0 to 1
// in the order of the scores.
struct DiceTargets {
  const float* values = nullptr;
  bool are_labels = false;
  LabelRule rule = {};
  LabelOrder order = {};
  // The score of (item, channel, position) is at item * channels * positions + channel *
  // channel_step + position * position_step.
  int64_t channels = 1, positions = 1, channel_step = 1, position_step = 1;

  // Returns the place of position 0 of a row, which is a channel of an item.
  HD int64_t Start(int64_t row) const {
    return row / channels * channels * positions + row % channels * channel_step;
  }
  // Returns the target, or kNoDiceTarget for an ignored or bad one.
  HD float Of(int64_t row, int64_t position) const {
    if (!are_labels) {
      const float t = values[Start(row) + position * position_step];
      return rule.has_ignore && truncf(t) == static_cast<float>(rule.ignore) ? kNoDiceTarget : t;
    }
    const int c = rule.Read(values[order.At(row / channels * positions + position)]);
    if (c < 0) return kNoDiceTarget;
    return c == row % channels ? 1.0f : 0.0f;
  }
};

// Computes one row, a channel of an item: the overlap sum p t, the size sum (p + t), and the loss
// 1 - (2 overlap + smooth) / (size + smooth). The loss of an empty row without `smooth` is 0.
struct DiceRow {
  const float* p;
  float *overlap, *size, *loss;
  DiceTargets targets;
  float smooth;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = targets.Start(row.index), step = targets.position_step;
    const float common = row.Sum([&](int64_t i) {
      const float t = targets.Of(row.index, i);
      return t == kNoDiceTarget ? 0.0f : p[at + i * step] * t;
    });
    const float all = row.Sum([&](int64_t i) {
      const float t = targets.Of(row.index, i);
      return t == kNoDiceTarget ? 0.0f : p[at + i * step] + t;
    });
    row.Once([&] {
      overlap[row.index] = common;
      size[row.index] = all;
      const float divisor = all + smooth;
      loss[row.index] = divisor == 0 ? 0.0f : 1 - (2 * common + smooth) / divisor;
    });
  }
};

// Writes one row of dx = -weight * scale * (2 t (size + smooth) - (2 overlap + smooth)) / (size +
// smooth)^2; 0 where a position does not count.
struct DiceGradientRow {
  const float *overlap, *size, *weight;
  float* dx;
  DiceTargets targets;
  float smooth, scale;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = targets.Start(row.index), step = targets.position_step;
    const float divisor = size[row.index] + smooth, above = 2 * overlap[row.index] + smooth;
    const float factor = divisor == 0 ? 0.0f : -*weight * scale / divisor;
    const float share = divisor == 0 ? 0.0f : above / divisor;
    row.ForEach([&](int64_t i) {
      const float t = targets.Of(row.index, i);
      dx[at + i * step] = t == kNoDiceTarget ? 0.0f : factor * (2 * t - share);
    });
  }
};

// Returns the loss of a row, for the sum.
struct DiceRowLoss {
  const float* loss;
  HD float operator()(int64_t row) const { return loss[row]; }
};

// loss = the mean over items and channels of 1 - (2 sum p t + smooth) / (sum p + sum t + smooth),
// with sums over the positions. Source: Milletari et al., "V-Net", arXiv:1606.04797, which sums
// the squares of p and t in the denominator. This class sums p and t, as MONAI's DiceLoss does.
class DiceLoss final : public Layer {
 public:
  explicit DiceLoss(const LayerSpec& spec)
      : spec_(spec), smooth_(spec.proto().dice_loss_param().smooth()) {
    if (!(smooth_ >= 0 && std::isfinite(smooth_))) {
      spec.FailIn(kDiceLossParam, "smooth",
                  Join("smooth is ", smooth_, "; it must be a number, 0 or more"));
    }
    const caffe::LossParameter& loss = spec.proto().loss_param();
    for (const auto& [is_given, field] : {std::pair(loss.has_normalization(), "normalization"),
                                          {loss.has_normalize(), "normalize"},
                                          {loss.has_label_smoothing(), "label_smoothing"},
                                          {loss.class_weight_size() > 0, "class_weight"},
                                          {loss.has_class_weight_power(), "class_weight_power"},
                                          {loss.pos_weight_size() > 0, "pos_weight"}}) {
      if (!is_given) continue;
      spec.FailIn("loss_param", field,
                  Join("DiceLoss is a mean over items and channels and does not support ", field,
                       "; remove it"));
    }
  }

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RefuseSwappedBottoms(ctx, spec_, 1);
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "probabilities (N, C, ...)");
    const Shape& in = ctx.Input(0);
    targets_ = {};
    targets_.channels = in[1];
    targets_.positions = in.Count(2);
    targets_.channel_step = in.IsImage() ? 1 : targets_.positions;
    targets_.position_step = in.IsImage() ? in[1] : 1;
    // With one channel both orders are the same, so (N, H, W) may be the targets of (N, 1, H, W).
    targets_.are_labels = ctx.Input(1) != in && !(in[1] == 1 && ctx.Input(1).Count() == in.Count());
    targets_.rule = LabelRuleOf(spec_, in[1]);
    if (targets_.are_labels) targets_.order = RequireLabels(ctx, spec_, 1);
    rows_ = in[0] * in[1];
    ctx.Output(0, {});
    ScratchLayout layout;
    for (ScratchRegion<float>* const region : {&overlap_, &size_, &loss_}) {
      *region = layout.Add<float>(rows_);
    }
    ctx.Workspace(layout.Bytes());
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }

  void Forward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    MapRows(run.device(), rows_, targets_.positions,
            DiceRow{run.Input(0).f32(), overlap_.At(kept), size_.At(kept), loss_.At(kept),
                    TargetsOf(run), smooth_});
    if (targets_.are_labels) ReportBadLabels(run, targets_.rule);
    ReduceSum(run.device(), rows_, DiceRowLoss{loss_.At(kept)}, 1 / static_cast<float>(rows_),
              run.Output(0).f32());
  }

  void ThrowInputError(const RunContext& run, int64_t at, float label) const override {
    ThrowBadLabel(spec_, run.Input(1).shape, targets_.rule, at, label);
  }

  void Backward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    MapRows(run.device(), rows_, targets_.positions,
            DiceGradientRow{overlap_.At(kept), size_.At(kept), run.GradOutput(0).f32(),
                            run.GradInput(0).f32(), TargetsOf(run), smooth_,
                            1 / static_cast<float>(rows_)});
  }

 private:
  // Returns the targets of this pass.
  DiceTargets TargetsOf(const RunContext& run) const {
    DiceTargets targets = targets_;
    targets.values = run.Input(1).f32();
    return targets;
  }

  LayerSpec spec_;
  float smooth_;
  DiceTargets targets_;
  int64_t rows_ = 0;  // channels of all items
  ScratchRegion<float> overlap_, size_, loss_;
};

const RegisterLayer<DiceLoss> kDiceLoss(
    "DiceLoss",
    {.text = "A loss for segmentation in which small objects count as much as large ones.\n"
             "The mean over items and channels of 1 - (2 sum p t + smooth) / (sum p + sum t + "
             "smooth), with sums over all positions.\n"
             "bottom 0: probabilities p (N, C, ...) of a Sigmoid or Softmax layer, not scores. "
             "bottom 1: a class label for each position, as for SoftmaxWithLoss (t is 1 in the "
             "label's channel, else 0), or targets t from 0 to 1 of the same shape as bottom 0. "
             "Positions with ignore_label of loss_param do not count. The top is a scalar.",
     .param = kDiceLossParam,
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer

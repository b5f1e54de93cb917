#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Caffe's constant, which keeps the gradient finite if the items of a pair are equal.
constexpr float kNearZero = 1e-4f;

struct Rule {
  float margin;
  bool legacy;
};

// Computes the square of a pair's distance, and the pair's loss.
struct PairRow {
  const float *a, *b, *alike;
  float *square, *loss;
  Rule rule;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * row.length;
    const float d2 =
        row.Sum([&](int64_t i) { return (a[at + i] - b[at + i]) * (a[at + i] - b[at + i]); });
    row.Once([&] {
      square[row.index] = d2;
      const float gap = rule.margin - (rule.legacy ? d2 : sqrtf(d2));
      const float apart = gap > 0 ? (rule.legacy ? gap : gap * gap) : (gap != gap ? gap : 0.0f);
      loss[row.index] = truncf(alike[row.index]) != 0 ? d2 : apart;
    });
  }
};

// Returns the loss of pair i, for the sum.
struct LossOf {
  const float* loss;
  HD float operator()(int64_t i) const { return loss[i]; }
};

// Computes one row of an input's gradient: +-(a - b) / N times 1 for a pair of the same class; else
// times -(margin - d) / d within the margin and 0 outside it (legacy: -1 and 0).
struct PairGradientRow {
  const float *a, *b, *alike, *square, *weight;
  float* to;
  Rule rule;
  float scale;  // 1 / N for the first input, -1 / N for the second

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * row.length;
    const float d2 = square[row.index], d = sqrtf(d2);
    float factor = 1;
    if (truncf(alike[row.index]) == 0) {
      const float gap = rule.margin - (rule.legacy ? d2 : d);
      factor = gap > 0 ? (rule.legacy ? -1.0f : -gap / (d + kNearZero)) : 0.0f;
    }
    const float by = *weight * scale * factor;
    row.ForEach([&](int64_t i) { to[at + i] = by * (a[at + i] - b[at + i]); });
  }
};

// loss = sum (y d^2 + (1 - y) max(margin - d, 0)^2) / (2 N) over N pairs, where d is the distance
// of the two features and y = 1 for a pair of the same class. legacy_version: max(margin - d^2, 0).
// Source: Hadsell, Chopra and LeCun, "Dimensionality reduction by learning an invariant mapping",
// CVPR 2006.
class ContrastiveLoss final : public Layer {
 public:
  explicit ContrastiveLoss(const LayerSpec& spec) : spec_(spec) {
    const caffe::ContrastiveLossParameter& param = spec.proto().contrastive_loss_param();
    rule_ = {param.margin(), param.legacy_version()};
  }

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "features (N, C)");
    const Shape& in = ctx.Input(0);
    if (!(ctx.Input(1) == in)) {
      spec_.Fail("bottom",
                 Join("features have shapes ", Dims(in), " and ", Dims(ctx.Input(1)),
                      "; they must be equal"),
                 1);
    }
    if (ctx.Input(2).Count() != in[0]) {
      spec_.Fail("bottom",
                 Join("bottom '", spec_.proto().bottom(2), "' has shape ", Dims(ctx.Input(2)),
                      "; it needs one number for each of the ", in[0],
                      " pairs: 1 if both have the same class, 0 if not"),
                 2);
    }
    items_ = in[0];
    length_ = in.Count(1);
    ctx.Output(0, {});
    ctx.Workspace(2 * sizeof(float) * static_cast<size_t>(items_));
    for (int i = 0; i < 3; ++i) ctx.SaveInput(i);
    ctx.NotDifferentiable(2);
  }

  void Forward(const RunContext& run) override {
    auto* square = reinterpret_cast<float*>(run.Workspace().data());
    float* const loss = square + items_;
    MapRows(
        run.device(), items_, length_,
        PairRow{run.Input(0).f32(), run.Input(1).f32(), run.Input(2).f32(), square, loss, rule_});
    ReduceSum(run.device(), items_, LossOf{loss}, 0.5f / static_cast<float>(items_),
              run.Output(0).f32());
  }

  void Backward(const RunContext& run) override {
    const auto* square = reinterpret_cast<const float*>(run.Workspace().data());
    for (int i = 0; i < 2; ++i) {
      if (!run.NeedsGradInput(i)) continue;
      const float scale = (i == 0 ? 1.0f : -1.0f) / static_cast<float>(items_);
      MapRows(run.device(), items_, length_,
              PairGradientRow{run.Input(0).f32(), run.Input(1).f32(), run.Input(2).f32(), square,
                              run.GradOutput(0).f32(), run.GradInput(i).f32(), rule_, scale});
    }
  }

 private:
  LayerSpec spec_;
  Rule rule_{};
  int64_t items_ = 0, length_ = 0;
};

const RegisterLayer<ContrastiveLoss> kContrastiveLoss(
    "ContrastiveLoss",
    {.text =
         "Pulls pairs of the same class together and pushes other pairs apart.\n"
         "bottoms: features a and b (N, C), and N numbers y: not 0 for pairs of the same class. "
         "Fractions are cut off, so 0.5 is 0. top: sum (y d^2 + (1 - y) max(margin - d, 0)^2) / "
         "(2 N), where d is the distance of a and b. legacy_version uses max(margin - d^2, 0) "
         "instead of the square. Source: Hadsell, Chopra and LeCun, CVPR 2006.",
     .param = "contrastive_loss_param",
     .arity = {.min_in = 3, .max_in = 3}});

}  // namespace
}  // namespace trainer

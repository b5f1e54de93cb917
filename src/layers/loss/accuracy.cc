#include "shared/checks.h"
#include "shared/class_labels.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr float kNotCounted = -1;

// Sets hit = 1, at the place of the row's label, if fewer than top_k other classes have at least
// the label's score. Ties and NaN scores count against the label.
struct HitRow {
  const float *x, *label;
  float* hit;
  Rows rows;
  LabelRule rule;
  LabelOrder order;
  float top_k;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const int64_t place = order.At(row.index);
    const int c = rule.Read(label[place]);
    if (c < 0) {
      row.Once([&] { hit[place] = kNotCounted; });
      return;
    }
    const float own = x[at + c * step];
    const float above = row.Sum([&](int64_t i) { return x[at + i * step] < own ? 0.0f : 1.0f; });
    const float self = own < own ? 0.0f : 1.0f;  // the sum includes the label's own class
    row.Once([&] { hit[place] = above - self < top_k ? 1.0f : 0.0f; });
  }
};

// Returns 1 for a hit, else 0: a term of the number of hits.
struct Hits {
  const float* hit;
  HD float operator()(int64_t i) const { return hit[i] > 0 ? 1.0f : 0.0f; }
};
// Returns 1 for a label that counts, else 0: a term of the number of valid labels.
struct Valid {
  const float* hit;
  HD float operator()(int64_t i) const { return hit[i] >= 0 ? 1.0f : 0.0f; }
};

// Divides the number of hits by the number of valid labels. Without a valid label, the result is 0.
struct Divide {
  const float* sums;  // number of hits, number of valid rows
  float* out;
  HD void operator()(int64_t) const { *out = sums[1] > 0 ? sums[0] / sums[1] : 0.0f; }
};

// Computes one class per row: the fraction of hits among its labels, 0 if it does not occur.
struct ClassRow {
  const float *label, *hit;
  float* out;
  LabelRule rule;

  template <class Row>
  HD void operator()(const Row& row) const {
    const auto c = static_cast<int>(row.index);
    const float hits =
        row.Sum([&](int64_t i) { return rule.Read(label[i]) == c && hit[i] > 0 ? 1.0f : 0.0f; });
    const float all =
        row.Sum([&](int64_t i) { return rule.Read(label[i]) == c && hit[i] >= 0 ? 1.0f : 0.0f; });
    row.Once([&] { out[row.index] = all > 0 ? hits / all : 0.0f; });
  }
};

// The share of labels among the top_k scores of their rows. A tie counts against the label. Labels
// that are ignore_label or invalid do not count.
class Accuracy final : public Layer {
 public:
  explicit Accuracy(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    const caffe::AccuracyParameter& param = spec_.proto().accuracy_param();
    RefuseSwappedBottoms(ctx, spec_, param.axis());
    const int axis = AxisIn(spec_, "accuracy_param", "axis", param.axis(), ctx.Input(0));
    order_ = RequireLabels(ctx, spec_, axis);
    rows_ = AxisRows(ctx.Input(0), axis);
    rule_ = {rows_.length, param.has_ignore_label(), param.ignore_label()};
    if (param.top_k() < 1 || param.top_k() > rows_.length) {
      spec_.FailIn("accuracy_param", "top_k",
                   Join("top_k is ", param.top_k(), "; with ", rows_.length,
                        " classes it must be 1 to ", rows_.length));
    }
    ctx.Output(0, {});
    if (ctx.NumOutputs() > 1) ctx.Output(1, {rows_.length});
    ScratchLayout layout;
    sums_ = layout.Add<float>(2);
    hits_ = layout.Add<float>(rows_.count);
    ctx.Workspace(layout.Bytes());
    ctx.NotDifferentiable(0);
    ctx.NotDifferentiable(1);
  }

  // Top 1, if there is one, gets the share of hits for each class; 0 for a class without labels.
  void Forward(const RunContext& run) override {
    const Device& device = run.device();
    float *const sums = sums_.At(run.Workspace()), *const hit = hits_.At(run.Workspace());
    const float *x = run.Input(0).f32(), *label = run.Input(1).f32();
    const auto top_k = static_cast<float>(spec_.proto().accuracy_param().top_k());
    MapRows(device, rows_.count, rows_.length, HitRow{x, label, hit, rows_, rule_, order_, top_k});
    ReduceSum(device, rows_.count, Hits{hit}, 1, sums);
    ReduceSum(device, rows_.count, Valid{hit}, 1, sums + 1);
    ReportBadLabels(run, rule_);
    ForEach(device, 1, Divide{sums, run.Output(0).f32()});
    if (run.NumOutputs() < 2) return;
    MapRows(device, rows_.length, rows_.count, ClassRow{label, hit, run.Output(1).f32(), rule_});
  }

  void ThrowInputError(const RunContext& run, int64_t at, float label) const override {
    ThrowBadLabel(spec_, run.Input(1).shape, rule_, at, label);
  }

 private:
  LayerSpec spec_;
  Rows rows_;
  LabelRule rule_;
  LabelOrder order_;
  // in the workspace: the number of hits and of valid rows; the result of each row
  ScratchRegion<float> sums_, hits_;
};

const RegisterLayer<Accuracy> kAccuracy(
    "Accuracy",
    {.text = "The fraction of rows with a label among the top_k scores; a tie counts as a miss.\n"
             "bottom 0: scores, classes along `axis` (default 1). bottom 1: labels, one per row; "
             "fractions are cut off (0.5 is class 0). Labels equal to ignore_label do not count.\n"
             "top 0: the fraction, a scalar; 0 if there is no valid label. top 1 (optional): the "
             "fraction of each class; 0 if a class does not occur. No gradient.",
     .param = "accuracy_param",
     .arity = {.min_in = 2, .max_in = 2, .min_out = 1, .max_out = 2}});

}  // namespace
}  // namespace trainer

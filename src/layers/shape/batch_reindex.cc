#include <cmath>

#include "shared/checks.h"
#include "shared/index_checks.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Computes element i of the output; NaN for a bad index, which is also reported.
struct TakeItem {
  const float *x, *index;
  float* y;
  LabelRule rule;
  int64_t block;

  HD void operator()(int64_t i) const {
    const int64_t item = rule.Read(index[i / block]);
    y[i] = item < 0 ? NAN : x[item * block + i % block];
  }
};

// Computes the gradient of element `at` of all items. One thread adds all output items in order, so
// that an item that was selected several times gets the same sum on every run.
struct AddItems {
  const float *dy, *index;
  float* dx;
  LabelRule rule;
  int64_t count, block;

  HD void operator()(int64_t at) const {
    for (int64_t item = 0; item < rule.classes; ++item) dx[item * block + at] = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t item = rule.Read(index[i]);
      if (item >= 0) dx[item * block + at] += dy[i * block + at];
    }
  }
};

// y[i] = x[index[i]] over the items of a batch: leaves out, repeats and reorders them. The indices,
// input 1, are checked in every pass.
class BatchReindex final : public Layer {
 public:
  explicit BatchReindex(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 1, Shape::kMaxAxes, "items (N, ...)");
    RequireRank(ctx, spec_, 1, 1, 1, "one axis of indices");
    const Shape& in = ctx.Input(0);
    rule_.classes = in[0];
    block_ = in.Count(1);
    ctx.Output(0, in.With(0, ctx.Input(1)[0]));
    ctx.SaveInput(1);
    ctx.NotDifferentiable(1);
  }

  void Forward(const RunContext& run) override {
    ReportBadIndices(run, 1, rule_);
    ForEach(run.device(), run.Output(0).Count(),
            TakeItem{run.Input(0).f32(), run.Input(1).f32(), run.Output(0).f32(), rule_, block_});
  }

  void ThrowInputError(const RunContext& run, int64_t at, float index) const override {
    ThrowBadIndex(spec_, 1, run.Input(1).shape, rule_, "items", at, index);
  }

  void Backward(const RunContext& run) override {
    ForEach(run.device(), block_,
            AddItems{run.GradOutput(0).f32(), run.Input(1).f32(), run.GradInput(0).f32(), rule_,
                     run.Input(1).Count(), block_});
  }

 private:
  LayerSpec spec_;
  LabelRule rule_;
  int64_t block_ = 1;
};

const RegisterLayer<BatchReindex> kBatchReindex(
    "BatchReindex",
    {.text = "Selects items of a batch: top[i] = bottom0[bottom1[i]].\n"
             "Items may be left out, repeated and reordered. The indices are checked in every "
             "pass and get no gradient.",
     .param = "",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer

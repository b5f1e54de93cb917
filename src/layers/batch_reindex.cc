#include <cmath>

#include "common/checks.h"
#include "common/index_list.h"
#include "trainer/backend/map.h"

namespace trainer {
namespace {

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

// One element within the items: what was chosen twice adds up, always in the same order.
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

class BatchReindex final : public Layer {
 public:
  explicit BatchReindex(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    RequireF32(plan, spec_);
    RequireRank(plan, spec_, 0, 1, Shape::kMaxAxes, "items (N, ...)");
    RequireRank(plan, spec_, 1, 1, 1, "one axis of indices");
    const Shape& in = plan.In(0);
    rule_.classes = in[0];
    block_ = in.Count(1);
    plan.Out(0, in.With(0, plan.In(1)[0]));
    plan.KeepInput(1);
    plan.NoGradient(1);
  }

  void Forward(const RunContext& run) override {
    ReportBadIndices(run, 1, rule_);
    ForEach(run.device(), run.Out(0).Count(),
            TakeItem{run.In(0).f32(), run.In(1).f32(), run.Out(0).f32(), rule_, block_});
  }

  void ThrowFault(const RunContext& run, int64_t at, float index) const override {
    ThrowBadIndex(spec_, 1, run.In(1).shape, rule_, "items", at, index);
  }

  void Backward(const RunContext& run) override {
    ForEach(run.device(), block_,
            AddItems{run.GradOut(0).f32(), run.In(1).f32(), run.GradIn(0).f32(), rule_,
                     run.In(1).Count(), block_});
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

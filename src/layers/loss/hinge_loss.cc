#include "loss/item_loss.h"
#include "trainer/backend/loops/map_rows.h"

namespace trainer {
namespace {

// Computes the loss of one item: the sum over classes j of max(0, 1 - d_j x_j) ^ p, with d_j = 1
// for the label, else -1.
struct HingeRow {
  const float *x, *label;
  float* loss;
  LabelRule rule;
  bool squared;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * row.length;
    const int c = rule.Read(label[row.index]);
    const float sum = row.Sum([&](int64_t j) {
      const float m = 1 + (j == c ? -x[at + j] : x[at + j]);
      const float margin = m > 0 || m != m ? m : 0.0f;
      return squared ? margin * margin : margin;
    });
    row.Once([&] { loss[row.index] = c < 0 ? kBadRow : sum; });
  }
};

// Computes one row of dx: -d_j (L1) or -2 d_j (1 - d_j x_j) (L2) within the margin, else 0, times
// the loss weight / N.
struct HingeGradientRow {
  const float *x, *label, *weight;
  float* dx;
  LabelRule rule;
  bool squared;
  float scale;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * row.length;
    const int c = rule.Read(label[row.index]);
    const float d = *weight * scale;
    row.ForEach([&](int64_t j) {
      const float sign = j == c ? -1.0f : 1.0f;
      const float margin = 1 + sign * x[at + j];
      const float slope = squared ? 2 * margin * sign : sign;
      dx[at + j] = margin > 0 ? d * slope : 0.0f;
    });
  }
};

// loss = sum_j max(0, 1 - d_j x_j)^p / N with d_j = 1 for the label's class, else -1; p is 1 for
// norm L1 and 2 for L2.
class HingeLoss final : public ItemLoss {
 public:
  explicit HingeLoss(const LayerSpec& spec)
      : ItemLoss(spec),
        squared_(spec.proto().hinge_loss_param().norm() == caffe::HingeLossParameter::L2) {}

  void Backward(const RunContext& run) override {
    const int64_t items = run.Input(0).shape[0];
    MapRows(
        run.device(), items, rule().classes,
        HingeGradientRow{run.Input(0).f32(), run.Input(1).f32(), run.GradOutput(0).f32(),
                         run.GradInput(0).f32(), rule(), squared_, 1 / static_cast<float>(items)});
  }

 private:
  void LossOfItems(const RunContext& run, float* loss) const override {
    MapRows(run.device(), run.Input(0).shape[0], rule().classes,
            HingeRow{run.Input(0).f32(), run.Input(1).f32(), loss, rule(), squared_});
  }

  bool squared_;
};

const RegisterLayer<HingeLoss> kHingeLoss(
    "HingeLoss",
    {.text = "One-against-all margin loss: sum_j max(0, 1 - d_j x_j)^p / N.\n"
             "d_j is 1 for the label's class, else -1. bottom 0: scores (N, C) (or more axes of 1 "
             "each). bottom 1: N labels, checked in every pass. p is 1 for norm L1 (default), 2 "
             "for L2. The top is a scalar.",
     .param = "hinge_loss_param",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer

#include "loss/item_loss.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

constexpr float kMultinomialLogisticLossLeast = 1e-20f;  // Caffe's lower bound of a probability

// Computes the loss of item i, -log p[label] with p at least 1e-20.
struct NegativeLog {
  const float *p, *label;
  float* loss;
  LabelRule rule;
  HD void operator()(int64_t i) const {
    const int c = rule.Read(label[i]);
    if (c < 0) {
      loss[i] = kBadRow;
    } else {
      const float chosen = p[i * rule.classes + c];
      loss[i] =
          -logf(chosen < kMultinomialLogisticLossLeast ? kMultinomialLogisticLossLeast : chosen);
    }
  }
};

// Returns the gradient of element i: -weight / (N p) at the label's class, else 0.
struct NegativeLogGradient {
  const float *p, *label, *weight;
  LabelRule rule;
  float scale;
  HD float operator()(int64_t i, float p_i) const {
    const int c = rule.Read(label[i / rule.classes]);
    if (i % rule.classes != c) return 0;
    return -*weight * scale /
           (p_i < kMultinomialLogisticLossLeast ? kMultinomialLogisticLossLeast : p_i);
  }
};

// loss = -sum log p[label] / N for probabilities p, which a Softmax usually computes.
class MultinomialLogisticLoss final : public ItemLoss {
 public:
  using ItemLoss::ItemLoss;

  void Backward(const RunContext& run) override {
    const float scale = 1 / static_cast<float>(run.Input(0).shape[0]);
    MapIndexed(run.device(),
               NegativeLogGradient{run.Input(0).f32(), run.Input(1).f32(), run.GradOutput(0).f32(),
                                   rule(), scale},
               run.GradInput(0), run.Input(0));
  }

 private:
  void LossOfItems(const RunContext& run, float* loss) const override {
    ForEach(run.device(), run.Input(0).shape[0],
            NegativeLog{run.Input(0).f32(), run.Input(1).f32(), loss, rule()});
  }
};

const RegisterLayer<MultinomialLogisticLoss> kMultinomialLogisticLoss(
    "MultinomialLogisticLoss",
    {.text = "-sum log p[label] / N, of probabilities p. With scores, use SoftmaxWithLoss.\n"
             "bottom 0: probabilities (N, C) (or more axes of 1 each), at least 1e-20. bottom 1: "
             "N labels, checked in every pass. The top is a scalar.",
     .param = "",
     .arity = {.min_in = 2, .max_in = 2}});

}  // namespace
}  // namespace trainer

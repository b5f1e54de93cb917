#include <cmath>

#include "update.h"

namespace trainer {
namespace {

// Adam with the decay apart from the gradient, beta1 = momentum and beta2 = momentum2:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//   w = w - rate * (m_hat / (sqrt(v_hat) + delta) + weight_decay * decay_mult * w),
// where m_hat = m / (1 - beta1^t) and v_hat = v / (1 - beta2^t), t counted from 1. The decay is
// in neither m nor v, so it shrinks all weights by the same share.
// Source: Loshchilov and Hutter, arXiv:1711.05101, algorithm 2; rate stands for alpha and for eta.
struct AdamWStep {
  float rate, beta1, beta2, delta, decay;
  float m_correction, v_correction;  // 1 / (1 - beta1^t), 1 / (1 - beta2^t)
  HD void operator()(float& w, float& m, float& v, float g) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= rate * (m * m_correction / (sqrtf(v * v_correction) + delta) + decay * w);
  }
};

struct CorrectDecoupled {
  UpdateNumbers numbers;
  float beta2;
  HD void operator()(int64_t) const {
    const double t = UpdateNumber(numbers), beta1 = numbers.now->rates.momentum;
    numbers.now->of_rule[0] = 1 / (1 - pow(beta1, t));
    numbers.now->of_rule[1] = 1 / (1 - pow(double{beta2}, t));
  }
};

struct MakeAdamW {
  const RateWords* now;
  float beta2, delta;
  HD AdamWStep operator()(const StepRates& r) const {
    const auto m_correction = static_cast<float>(now->of_rule[0]);
    const auto v_correction = static_cast<float>(now->of_rule[1]);
    return {r.rate, r.momentum, beta2, delta, r.decay_l2, m_correction, v_correction};
  }
};

class AdamW final : public Rule {
 public:
  explicit AdamW(const SolverSpec& spec)
      : beta2_(spec.proto.momentum2()), delta_(spec.proto.delta()) {
    RefuseL1(spec, "AdamW");
  }
  int StatesPerWeight() const override { return 2; }
  bool CountsUpdates() const override { return true; }
  void Begin(const Device& device, const UpdateNumbers& numbers) override {
    ForEach(device, 1, CorrectDecoupled{numbers, beta2_});
  }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<2>(device, part, MakeAdamW{part.numbers.now, beta2_, delta_}, Decay::kOfTheRule);
  }

 private:
  float beta2_, delta_;
};

const RegisterRule<AdamW> kAdamW("AdamW");

}  // namespace
}  // namespace trainer

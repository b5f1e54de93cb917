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

struct MakeAdamW {
  float beta2, delta, m_correction, v_correction;
  HD AdamWStep operator()(const StepRates& r) const {
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
  void Step(const Device& device, const UpdatePart& part) override {
    const double t = part.numbers.iter + 1;
    const float beta1 = part.numbers.momentum;
    UpdateWeights<2>(device, part,
                     MakeAdamW{beta2_, delta_, static_cast<float>(1 / (1 - std::pow(beta1, t))),
                               static_cast<float>(1 / (1 - std::pow(beta2_, t)))},
                     Decay::kOfTheRule);
  }

 private:
  float beta2_, delta_;
};

const RegisterRule<AdamW> kAdamW("AdamW");

}  // namespace
}  // namespace trainer

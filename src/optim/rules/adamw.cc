#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// AdamW: Loshchilov and Hutter, arXiv:1711.05101, algorithm 2. w is the paper's theta. The learning
// rate lr replaces both alpha and the schedule eta, so that it also scales the decay:
//   m = beta1 m + (1 - beta1) g;  m_hat = m / (1 - beta1^t);
//   v = beta2 v + (1 - beta2) g^2;  v_hat = v / (1 - beta2^t);
//   w = w - lr * (m_hat / (sqrt(v_hat) + epsilon) + lambda w).
// Solver fields: beta1 is `momentum`, beta2 `momentum2`, epsilon `delta`, lambda weight_decay *
// decay_mult. t counts from 1 the updates that were not skipped, for each group. Weight decay
// enters neither m nor v (Decay::kOfTheRule), so it shrinks all weights by the same factor. L1 is
// refused.
struct AdamWStep {
  float lr, beta1, beta2, epsilon, lambda;
  float m_correction, v_correction;  // 1 / (1 - beta1^t), 1 / (1 - beta2^t)
  HD void operator()(float& w, float& m, float& v, float g) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= lr * (m * m_correction / (sqrtf(v * v_correction) + epsilon) + lambda * w);
  }
};

// Computes 1 / (1 - beta1^t) and 1 / (1 - beta2^t) of a group in double, once per update.
struct AdamWBiasCorrection {
  UpdateArgs args;
  float beta2;
  HD void operator()(int64_t group) const {
    const double t = UpdateNumber(args, static_cast<int>(group));
    const double beta1 = args.hyper->values.momentum;
    args.hyper->rule_terms[group][0] = 1 / (1 - pow(beta1, t));
    args.hyper->rule_terms[group][1] = 1 / (1 - pow(double{beta2}, t));
  }
};

// Returns the update of one parameter: beta1 is the momentum, lambda its L2 decay.
struct MakeAdamW {
  const DeviceHyperparams* hyper;
  float beta2, epsilon;
  HD AdamWStep operator()(const ParamHyperparams& r) const {
    const auto m_correction = static_cast<float>(hyper->rule_terms[r.group][0]);
    const auto v_correction = static_cast<float>(hyper->rule_terms[r.group][1]);
    return {r.lr, r.momentum, beta2, epsilon, r.decay_l2, m_correction, v_correction};
  }
};

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(const SolverSpec& spec)
      : beta2_(spec.proto.momentum2()), epsilon_(spec.proto.delta()) {
    RefuseL1(spec, "AdamW");
  }
  int StatesPerWeight() const override { return 2; }
  bool CountsUpdates() const override { return true; }
  void Begin(const Device& device, const UpdateArgs& args) override {
    ForEach(device, args.groups, AdamWBiasCorrection{args, beta2_});
  }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<2>(device, range, MakeAdamW{range.args.hyper, beta2_, epsilon_},
                     Decay::kOfTheRule);
  }

 private:
  float beta2_, epsilon_;
};

const RegisterUpdateRule<AdamW> kAdamW("AdamW");

}  // namespace
}  // namespace trainer

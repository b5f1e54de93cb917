#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// Adam: Kingma and Ba, arXiv:1412.6980, algorithm 1 in the efficient form at the end of section 2.
// w is the paper's theta, g the gradient with weight decay; m and v are the moment estimates:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//   alpha_t = alpha * sqrt(1 - beta2^t) / (1 - beta1^t);
//   w = w - alpha_t * m / (sqrt(v) + epsilon_hat).
// Solver fields: alpha is the learning rate, beta1 `momentum`, beta2 `momentum2`, epsilon_hat
// `delta`. t counts from 1 the updates that were not skipped, for each group of parameters.
struct AdamStep {
  float alpha_t, beta1, beta2, epsilon_hat;
  HD void operator()(float& w, float& m, float& v, float g) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= alpha_t * m / (sqrtf(v) + epsilon_hat);
  }
};

// Computes alpha_t / alpha of a group in double, once per update: 1 - beta2^t loses its digits in
// float.
struct AdamBiasCorrection {
  UpdateArgs args;
  float beta2;
  HD void operator()(int64_t group) const {
    const double t = UpdateNumber(args, static_cast<int>(group));
    const double beta1 = args.hyper->values.momentum;
    args.hyper->rule_terms[group][0] = sqrt(1 - pow(double{beta2}, t)) / (1 - pow(beta1, t));
  }
};

// Returns the update of one parameter: alpha is its learning rate, beta1 the momentum.
struct MakeAdam {
  const DeviceHyperparams* hyper;
  float beta2, epsilon_hat;
  HD AdamStep operator()(const ParamHyperparams& r) const {
    const double correction = hyper->rule_terms[r.group][0];
    return {static_cast<float>(r.lr * correction), r.momentum, beta2, epsilon_hat};
  }
};

class Adam final : public UpdateRule {
 public:
  explicit Adam(const SolverSpec& spec)
      : beta2_(spec.proto.momentum2()), epsilon_hat_(spec.proto.delta()) {}
  int StatesPerWeight() const override { return 2; }
  bool CountsUpdates() const override { return true; }
  void Begin(const Device& device, const UpdateArgs& args) override {
    ForEach(device, args.groups, AdamBiasCorrection{args, beta2_});
  }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<2>(device, range, MakeAdam{range.args.hyper, beta2_, epsilon_hat_});
  }

 private:
  float beta2_, epsilon_hat_;
};

const RegisterUpdateRule<Adam> kAdam("Adam");

}  // namespace
}  // namespace trainer

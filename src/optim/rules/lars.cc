#include "update_loop.h"

namespace trainer {
namespace {

// LARS: You, Gitman and Ginsburg, arXiv:1708.03888, algorithm 1. Each parameter has a local
// learning rate lambda, which is 1 where |w| or |g| is 0:
//   lambda = eta * |w| / (|g| + beta |w|);  v = m v + gamma * lambda * (g + beta w);  w = w - v.
// Solver fields: gamma is the learning rate, m `momentum`, beta weight_decay * decay_mult, eta
// trust_coefficient. L1 and larc are refused.
// A parameter with decay_mult 0 keeps lambda = 1, because decay_mult 0 marks biases and the scales
// of normalizations, whose norm does not say how large a step they need. Biases start at 0, where a
// step in proportion to the norm would hardly move them.
// The g of the step already contains the decay, i.e. it is g + beta w of the paper.
struct LarsStep {
  float gamma_lambda, m;
  HD void operator()(float& w, float& v, float g) const {
    v = m * v + gamma_lambda * g;
    w -= v;
  }
};

struct MakeLars {
  float eta;
  // Returns the local learning rate lambda; r.grad_norm is |g| without the decay.
  HD float Lambda(const ParamHyperparams& r) const {
    if (!r.decays || r.weight_norm == 0 || r.grad_norm == 0) return 1;
    return eta * r.weight_norm / (r.grad_norm + r.decay_l2 * r.weight_norm);
  }
  HD LarsStep operator()(const ParamHyperparams& r) const { return {r.lr * Lambda(r), r.momentum}; }
};

class Lars final : public UpdateRule {
 public:
  explicit Lars(const SolverSpec& spec) : eta_(spec.proto.trust_coefficient()) {
    RefuseL1(spec, "LARS");
    if (!(eta_ > 0)) {
      spec.Fail("trust_coefficient",
                Join("trust_coefficient is ", eta_, "; it must be above 0, e.g. 0.001"));
    }
    if (spec.proto.larc()) {
      spec.Fail(
          "larc",
          "larc and type LARS both scale the learning rate by the norms; remove one of the two");
    }
  }
  int StatesPerWeight() const override { return 1; }
  bool NeedsNorms() const override { return true; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeLars{eta_});
  }

 private:
  float eta_;
};

const RegisterUpdateRule<Lars> kLars("LARS");

}  // namespace
}  // namespace trainer

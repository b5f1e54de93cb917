#include "update_loop.h"

namespace trainer {
namespace {

// LARS, momentum with a rate of its own for each parameter, lambda = weight_decay * decay_mult:
//   local = trust_coefficient * |w| / (|g| + lambda |w|), or 1 where |w| or |g| is 0;
//   v = momentum * v + rate * local * (g + lambda w);  w = w - v.
// Parameters with decay_mult 0 keep local = 1: their user says that they are biases or scales of a
// norm, whose size tells nothing about the step they need. Biases start at 0, where a step
// in proportion to the norm hardly moves.
// Source: You, Gitman and Ginsburg, arXiv:1708.03888, algorithm 1.
struct LarsStep {
  float lr, momentum;
  HD void operator()(float& w, float& v, float g) const {
    v = momentum * v + lr * g;
    w -= v;
  }
};

struct MakeLars {
  float trust;
  HD float Local(const ParamHyperparams& r) const {
    if (!r.decays || r.weight_norm == 0 || r.grad_norm == 0) return 1;
    return trust * r.weight_norm / (r.grad_norm + r.decay_l2 * r.weight_norm);
  }
  HD LarsStep operator()(const ParamHyperparams& r) const { return {r.lr * Local(r), r.momentum}; }
};

class Lars final : public UpdateRule {
 public:
  explicit Lars(const SolverSpec& spec) : trust_(spec.proto.trust_coefficient()) {
    RefuseL1(spec, "LARS");
    if (!(trust_ > 0)) {
      spec.Fail("trust_coefficient",
                Join("trust_coefficient is ", trust_, "; it must be above 0, e.g. 0.001"));
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
    UpdateWeights<1>(device, range, MakeLars{trust_});
  }

 private:
  float trust_;
};

const RegisterUpdateRule<Lars> kLars("LARS");

}  // namespace
}  // namespace trainer

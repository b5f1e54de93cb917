#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// Nesterov's accelerated gradient: Sutskever, Martens, Dahl and Hinton, ICML 2013, equations 3 and
// 4. The paper evaluates the gradient at theta + mu v. Caffe's form keeps w at that point, so that
// the gradient is the one at the weights; v has the opposite sign:
//   v' = mu v + epsilon g;  w = w - ((1 + mu) v' - mu v).
// Solver fields: mu is `momentum`, epsilon the learning rate.
struct NesterovStep {
  float epsilon, mu;
  HD void operator()(float& w, float& v, float g) const {
    const float before = v;
    v = mu * v + epsilon * g;
    w -= (1 + mu) * v - mu * before;
  }
};

// Returns the update of one parameter: epsilon is its learning rate, mu the momentum.
struct MakeNesterov {
  HD NesterovStep operator()(const ParamHyperparams& r) const { return {r.lr, r.momentum}; }
};

class Nesterov final : public UpdateRule {
 public:
  explicit Nesterov(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeNesterov());
  }
};

const RegisterUpdateRule<Nesterov> kNesterov("Nesterov");

}  // namespace
}  // namespace trainer

#include <cmath>

#include "update.h"

namespace trainer {
namespace {

// Nesterov's accelerated gradient, Caffe's form: v' = momentum * v + rate * g;
//   w = w - ((1 + momentum) * v' - momentum * v).
// Source: Sutskever et al., ICML 2013.
struct NesterovStep {
  float rate, momentum;
  HD void operator()(float& w, float& v, float g) const {
    const float before = v;
    v = momentum * v + rate * g;
    w -= (1 + momentum) * v - momentum * before;
  }
};

struct MakeNesterov {
  HD NesterovStep operator()(const StepRates& r) const { return {r.rate, r.momentum}; }
};

class Nesterov final : public Rule {
 public:
  explicit Nesterov(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<1>(device, part, MakeNesterov());
  }
};

const RegisterRule<Nesterov> kNesterov("Nesterov");

}  // namespace
}  // namespace trainer

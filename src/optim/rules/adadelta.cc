#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// AdaDelta: Zeiler, arXiv:1212.5701, algorithm 1, with a learning rate that the paper does not have
// (it is 1 there). rho is `momentum`, epsilon is `delta`, h is E[g^2] and s is E[dx^2]:
//   h = rho h + (1 - rho) g^2;  d = g * sqrt((s + epsilon) / (h + epsilon));
//   s = rho s + (1 - rho) d^2;  w = w - lr * d.
struct AdaDeltaStep {
  float lr, mu, delta;
  HD void operator()(float& w, float& h, float& s, float g) const {
    h = mu * h + (1 - mu) * g * g;
    const float d = g * sqrtf((s + delta) / (h + delta));
    s = mu * s + (1 - mu) * d * d;
    w -= lr * d;
  }
};

struct MakeAdaDelta {
  float delta;
  HD AdaDeltaStep operator()(const ParamHyperparams& r) const { return {r.lr, r.momentum, delta}; }
};

class AdaDelta final : public UpdateRule {
 public:
  explicit AdaDelta(const SolverSpec& spec) : delta_(spec.proto.delta()) {}
  int StatesPerWeight() const override { return 2; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<2>(device, range, MakeAdaDelta{delta_});
  }

 private:
  float delta_;
};

const RegisterUpdateRule<AdaDelta> kAdaDelta("AdaDelta");

}  // namespace
}  // namespace trainer

#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// AdaDelta: Zeiler, arXiv:1212.5701, algorithm 1, with a learning rate lr that the paper does not
// have (it is 1 there). w is the paper's x, mean_g2 is E[g^2], and mean_dx2 is E[dx^2]; dx has the
// opposite sign:
//   mean_g2 = rho mean_g2 + (1 - rho) g^2;
//   dx = sqrt(mean_dx2 + epsilon) / sqrt(mean_g2 + epsilon) * g;
//   mean_dx2 = rho mean_dx2 + (1 - rho) dx^2;  w = w - lr * dx.
// Solver fields: rho is `momentum`, epsilon `delta`.
struct AdaDeltaStep {
  float lr, rho, epsilon;
  HD void operator()(float& w, float& mean_g2, float& mean_dx2, float g) const {
    mean_g2 = rho * mean_g2 + (1 - rho) * g * g;
    const float dx = g * sqrtf((mean_dx2 + epsilon) / (mean_g2 + epsilon));
    mean_dx2 = rho * mean_dx2 + (1 - rho) * dx * dx;
    w -= lr * dx;
  }
};

// Returns the update of one parameter: rho is the momentum.
struct MakeAdaDelta {
  float epsilon;
  HD AdaDeltaStep operator()(const ParamHyperparams& r) const {
    return {r.lr, r.momentum, epsilon};
  }
};

class AdaDelta final : public UpdateRule {
 public:
  explicit AdaDelta(const SolverSpec& spec) : epsilon_(spec.proto.delta()) {}
  int StatesPerWeight() const override { return 2; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<2>(device, range, MakeAdaDelta{epsilon_});
  }

 private:
  float epsilon_;
};

const RegisterUpdateRule<AdaDelta> kAdaDelta("AdaDelta");

}  // namespace
}  // namespace trainer

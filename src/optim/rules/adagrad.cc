#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// AdaGrad: Duchi, Hazan and Singer, JMLR 12, 2011, the diagonal form. w is the paper's x. sum_g2 is
// the sum of all squared gradients so far (the diagonal of G), which never falls, so the steps only
// become shorter:
//   sum_g2 = sum_g2 + g^2;  w = w - eta * g / (sqrt(sum_g2) + delta).
// Solver fields: eta is the learning rate, delta `delta`. A momentum is refused.
struct AdaGradStep {
  float eta, delta;
  HD void operator()(float& w, float& sum_g2, float g) const {
    sum_g2 += g * g;
    w -= eta * g / (sqrtf(sum_g2) + delta);
  }
};

// Returns the update of one parameter: eta is its learning rate.
struct MakeAdaGrad {
  float delta;
  HD AdaGradStep operator()(const ParamHyperparams& r) const { return {r.lr, delta}; }
};

class AdaGrad final : public UpdateRule {
 public:
  explicit AdaGrad(const SolverSpec& spec) : delta_(spec.proto.delta()) {
    RefuseMomentum(spec, "AdaGrad");
  }
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeAdaGrad{delta_});
  }

 private:
  float delta_;
};

const RegisterUpdateRule<AdaGrad> kAdaGrad("AdaGrad");

}  // namespace
}  // namespace trainer

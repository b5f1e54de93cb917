#include <cmath>

#include "update.h"

namespace trainer {
namespace {

// AdaGrad: h = h + g^2;  w = w - rate * g / (sqrt(h) + delta).
// Source: Duchi et al., JMLR 12, 2011.
struct AdaGradStep {
  float rate, delta;
  HD void operator()(float& w, float& h, float g) const {
    h += g * g;
    w -= rate * g / (sqrtf(h) + delta);
  }
};

struct MakeAdaGrad {
  float delta;
  HD AdaGradStep operator()(const StepRates& r) const { return {r.rate, delta}; }
};

class AdaGrad final : public Rule {
 public:
  explicit AdaGrad(const SolverSpec& spec) : delta_(spec.proto.delta()) {
    RefuseMomentum(spec, "AdaGrad");
  }
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<1>(device, part, MakeAdaGrad{delta_});
  }

 private:
  float delta_;
};

const RegisterRule<AdaGrad> kAdaGrad("AdaGrad");

}  // namespace
}  // namespace trainer

#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// RMSProp: Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5, 2012.
// mean_square is MeanSquare(w, t) there, and decay, the solver's rms_decay, replaces its 0.9:
//   mean_square = decay * mean_square + (1 - decay) * g^2;
//   w = w - lr * g / (sqrt(mean_square) + delta).
// A momentum is refused.
struct RmsPropStep {
  float lr, decay, delta;
  HD void operator()(float& w, float& mean_square, float g) const {
    mean_square = decay * mean_square + (1 - decay) * g * g;
    w -= lr * g / (sqrtf(mean_square) + delta);
  }
};

// Returns the update of one parameter, with its learning rate.
struct MakeRmsProp {
  float decay, delta;
  HD RmsPropStep operator()(const ParamHyperparams& r) const { return {r.lr, decay, delta}; }
};

class RmsProp final : public UpdateRule {
 public:
  explicit RmsProp(const SolverSpec& spec)
      : decay_(spec.proto.rms_decay()), delta_(spec.proto.delta()) {
    RefuseMomentum(spec, "RMSProp");
    if (!(decay_ >= 0 && decay_ < 1)) {
      spec.Fail("rms_decay", Join("rms_decay is ", decay_, "; it must be at least 0 and below 1"));
    }
  }
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeRmsProp{decay_, delta_});
  }

 private:
  float decay_, delta_;
};

const RegisterUpdateRule<RmsProp> kRmsProp("RMSProp");

}  // namespace
}  // namespace trainer

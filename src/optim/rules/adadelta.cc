#include <cmath>

#include "update_loop.h"

namespace trainer {
namespace {

// AdaDelta, with momentum as its decay: h = mu h + (1 - mu) g^2;
//   d = g * sqrt((s + delta) / (h + delta));  s = mu s + (1 - mu) d^2;  w = w - rate * d.
// Source: Zeiler, arXiv:1212.5701.
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

#include "update.h"

namespace trainer {
namespace {

// SAG, as NVIDIA Caffe names it: a running average of the gradient, h = momentum * h +
// (1 - momentum) * g;  w = w - rate * h. Unlike SGD's, h knows no rate: a drop of the rate shrinks
// the old steps too.
struct SagStep {
  float rate, momentum;
  HD void operator()(float& w, float& h, float g) const {
    h = momentum * h + (1 - momentum) * g;
    w -= rate * h;
  }
};

struct MakeSag {
  HD SagStep operator()(const StepRates& r) const { return {r.rate, r.momentum}; }
};

class Sag final : public Rule {
 public:
  explicit Sag(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<1>(device, part, MakeSag());
  }
};

const RegisterRule<Sag> kSag("SAG");

}  // namespace
}  // namespace trainer

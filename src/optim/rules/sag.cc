#include "update_loop.h"

namespace trainer {
namespace {

// SAG, as NVIDIA Caffe names it: a running average of the gradient, h = momentum * h +
// (1 - momentum) * g;  w = w - rate * h. Unlike SGD's, h knows no rate: a drop of the rate shrinks
// the old steps too.
struct SagStep {
  float lr, momentum;
  HD void operator()(float& w, float& h, float g) const {
    h = momentum * h + (1 - momentum) * g;
    w -= lr * h;
  }
};

struct MakeSag {
  HD SagStep operator()(const ParamHyperparams& r) const { return {r.lr, r.momentum}; }
};

class Sag final : public UpdateRule {
 public:
  explicit Sag(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeSag());
  }
};

const RegisterUpdateRule<Sag> kSag("SAG");

}  // namespace
}  // namespace trainer

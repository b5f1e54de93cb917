#include "update_loop.h"

namespace trainer {
namespace {

// SAG is NVIDIA Caffe's name for an exponential moving average of the gradient (it is not the
// stochastic average gradient of Le Roux et al.):
//   mean_g = momentum * mean_g + (1 - momentum) * g;  w = w - lr * mean_g.
// Unlike the v of SGD, mean_g does not contain the learning rate, so a lower rate also shrinks the
// steps that earlier gradients still cause.
struct SagStep {
  float lr, momentum;
  HD void operator()(float& w, float& mean_g, float g) const {
    mean_g = momentum * mean_g + (1 - momentum) * g;
    w -= lr * mean_g;
  }
};

// Returns the update of one parameter, with its learning rate.
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

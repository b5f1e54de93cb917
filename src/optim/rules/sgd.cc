#include "update_loop.h"

namespace trainer {
namespace {

// SGD with momentum (Polyak's heavy ball), in Caffe's form:
//   v = momentum * v + lr * g;  w = w - v.
// v contains the learning rate, so after a drop of the rate earlier gradients keep their step size.
// PyTorch multiplies v by the rate in the second formula instead.
struct SgdStep {
  float lr, momentum;
  HD void operator()(float& w, float& v, float g) const {
    v = momentum * v + lr * g;
    w -= v;
  }
};

// Returns the update of one parameter, with its learning rate.
struct MakeSgd {
  HD SgdStep operator()(const ParamHyperparams& r) const { return {r.lr, r.momentum}; }
};

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdateRange& range) override {
    UpdateWeights<1>(device, range, MakeSgd());
  }
};

const RegisterUpdateRule<Sgd> kSgd("SGD");

}  // namespace
}  // namespace trainer

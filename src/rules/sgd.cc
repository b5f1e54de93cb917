#include "update.h"

namespace trainer {
namespace {

// SGD with momentum, Caffe's form: v = momentum * v + rate * g;  w = w - v.
// The rate is inside v: after a drop of the rate, old steps keep their old size.
struct SgdStep {
  float rate, momentum;
  HD void operator()(float& w, float& v, float g) const {
    v = momentum * v + rate * g;
    w -= v;
  }
};

struct MakeSgd {
  HD SgdStep operator()(const StepRates& r) const { return {r.rate, r.momentum}; }
};

class Sgd final : public Rule {
 public:
  explicit Sgd(const SolverSpec&) {}
  int StatesPerWeight() const override { return 1; }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<1>(device, part, MakeSgd());
  }
};

const RegisterRule<Sgd> kSgd("SGD");

}  // namespace
}  // namespace trainer

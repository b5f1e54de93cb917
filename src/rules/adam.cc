#include <cmath>

#include "update.h"

namespace trainer {
namespace {

// Adam, with beta1 = momentum and beta2 = momentum2: m = beta1 m + (1 - beta1) g;
//   v = beta2 v + (1 - beta2) g^2;  w = w - rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v)
//   + delta)
// with t counted from 1.
// Source: Kingma and Ba, arXiv:1412.6980, the form at the end of its section 2.
struct AdamStep {
  float corrected_rate, beta1, beta2, delta;
  HD void operator()(float& w, float& m, float& v, float g) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= corrected_rate * m / (sqrtf(v) + delta);
  }
};

struct Correct {
  UpdateNumbers numbers;
  float beta2;
  HD void operator()(int64_t) const {
    const double t = UpdateNumber(numbers), beta1 = numbers.now->rates.momentum;
    numbers.now->of_rule[0] = sqrt(1 - pow(double{beta2}, t)) / (1 - pow(beta1, t));
  }
};

struct MakeAdam {
  const RateWords* now;
  float beta2, delta;
  HD AdamStep operator()(const StepRates& r) const {
    return {static_cast<float>(r.rate * now->of_rule[0]), r.momentum, beta2, delta};
  }
};

class Adam final : public Rule {
 public:
  explicit Adam(const SolverSpec& spec)
      : beta2_(spec.proto.momentum2()), delta_(spec.proto.delta()) {}
  int StatesPerWeight() const override { return 2; }
  bool CountsUpdates() const override { return true; }
  void Begin(const Device& device, const UpdateNumbers& numbers) override {
    ForEach(device, 1, Correct{numbers, beta2_});
  }
  void Step(const Device& device, const UpdatePart& part) override {
    UpdateWeights<2>(device, part, MakeAdam{part.numbers.now, beta2_, delta_});
  }

 private:
  float beta2_, delta_;
};

const RegisterRule<Adam> kAdam("Adam");

}  // namespace
}  // namespace trainer

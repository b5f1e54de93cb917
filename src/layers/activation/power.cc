#include "shared/unary.h"

namespace trainer {
namespace {

// y = (shift + scale * x) ^ power and dx = dy * power * scale * (shift + scale * x) ^ (power - 1).
struct PowerMath {
  float power, scale, shift;

  explicit PowerMath(const LayerSpec& spec)
      : power(spec.proto().power_param().power()),
        scale(spec.proto().power_param().scale()),
        shift(spec.proto().power_param().shift()) {}
  // A linear function has the same slope everywhere, so its gradient does not need x.
  Keeps Keep() const {
    return power == 0 || power == 1 || scale == 0 ? Keeps::kNothing : Keeps::kInput;
  }
  // Returns base ^ exponent. The exponents 0, 1 and 2 need no powf; 0 ^ 0 is 1.
  HD float Raise(float base, float exponent) const {
    if (exponent == 0) return 1;
    if (exponent == 1) return base;
    if (exponent == 2) return base * base;
    return powf(base, exponent);
  }
  HD float Forward(float x) const { return Raise(shift + scale * x, power); }
  HD float Backward(float dy, float x) const {
    const float factor = power * scale;
    if (factor == 0) return 0;
    if (power == 1) return dy * factor;
    return dy * factor * Raise(shift + scale * x, power - 1);
  }
};

const RegisterLayer<Unary<PowerMath>> kPower(
    "Power", {.text = "y = (shift + scale * x) ^ power.\n"
                      "Defaults: power 1, scale 1, shift 0. Power 0 gives 1. Any shape.",
              .param = "power_param",
              .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer

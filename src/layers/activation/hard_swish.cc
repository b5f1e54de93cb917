#include "shared/unary.h"

namespace trainer {
namespace {

// y = x * ReLU6(x + 3) / 6: 0 up to -3, x from 3 on, and x * (x + 3) / 6 between. Source: Howard et
// al., "Searching for MobileNetV3", arXiv:1905.02244.
struct HardSwishMath {
  explicit HardSwishMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const {
    if (x <= -3) return 0;
    return x >= 3 ? x : x * (x + 3) / 6;
  }
  HD float Backward(float dy, float x) const {
    if (x <= -3) return 0;
    return x >= 3 ? dy : dy * (2 * x + 3) / 6;
  }
};

const RegisterLayer<Unary<HardSwishMath>> kHardSwish(
    "HardSwish", {.text = "y = x * (x + 3) / 6 within [-3, 3], 0 below, x above. Any shape.",
                  .param = "",
                  .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer

#include "shared/log_base.h"
#include "shared/unary.h"

namespace trainer {
namespace {

// y = log(shift + scale * x) to the given base, with factor = 1 / log(base); NaN for a negative
// argument. dx = dy * factor * scale / (shift + scale * x).
struct LogMath {
  float scale, shift, factor;

  explicit LogMath(const LayerSpec& spec)
      : scale(spec.proto().log_param().scale()),
        shift(spec.proto().log_param().shift()),
        factor(1 / LogOfBase(spec, "log_param", spec.proto().log_param().base(), true)) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const { return factor * logf(shift + scale * x); }
  HD float Backward(float dy, float x) const { return dy * factor * scale / (shift + scale * x); }
};

const RegisterLayer<Unary<LogMath>> kLog(
    "Log",
    {.text = "y = log(shift + scale * x) to the given base.\n"
             "Defaults: base e (written -1), scale 1, shift 0. Any shape. If the argument is "
             "negative, the result is NaN.",
     .param = "log_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer

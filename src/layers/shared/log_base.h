#pragma once

#include <cmath>

#include "trainer/base/text/text.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Returns the natural logarithm of `base`, a field of Exp's and Log's message `param`; -1 means e.
// Throws kConfig for other numbers that are not above 0, and for 1 if `one_is_bad`.
inline float LogOfBase(const LayerSpec& spec, const char* param, float base, bool one_is_bad) {
  if (base == -1) return 1;
  if (!(base > 0) || !std::isfinite(base) || (one_is_bad && base == 1)) {
    spec.FailIn(param, "base",
                Join("base is ", base, "; it must be above 0", one_is_bad ? " and not 1" : "",
                     ", or -1 for e"));
  }
  return std::log(base);
}

}  // namespace trainer

#pragma once

#include "trainer/layers/layer.h"

namespace trainer {

// Returns true for a ReLU without a negative slope, max(0, x), which a preceding layer can compute
// as it writes its output.
inline bool IsPlainRelu(const LayerSpec& spec) {
  return spec.type() == "ReLU" && spec.proto().relu_param().negative_slope() == 0;
}

}  // namespace trainer

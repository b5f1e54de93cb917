#pragma once

#include <span>

#include "update_rule.h"

namespace trainer {

// Limits each element of `gradients`, which are sums over `passes` multiplied by the loss scale, so
// that the mean gradient that the update rule sees is at most `limit` in size. `verdict` is on the
// device, or null if gradients are not scaled. NaN stays NaN.
void ClipValues(const Device& device, std::span<float> gradients, float limit, float passes,
                const GradientVerdict* verdict);

}  // namespace trainer

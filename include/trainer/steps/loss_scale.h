#pragma once
// Whether a run scales its loss, and how.

#include <optional>

#include "trainer/config/solver_spec.h"
#include "trainer/steps/update_decision.h"

namespace trainer {

// Nothing where neither the solver gives a loss_scale nor the net `needs` one, for gradients in a
// type with a small range. NVIDIA Caffe's global_grad_scale is what a factor that is found while
// training begins with, or, without global_grad_scale_adaptive and loss_scale, a fixed one.
std::optional<LossScaleOptions> LossScaleOf(const SolverSpec& spec, bool needs);

}  // namespace trainer

#pragma once
// Whether a run scales its loss, and how.

#include <optional>

#include "trainer/config/solver_spec.h"
#include "trainer/optim/loss_scaler.h"

namespace trainer {

// Returns nothing if the solver sets no loss_scale and the net does not `need` one, which it does
// if its gradients have a type with a small range. NVIDIA Caffe's global_grad_scale is the initial
// factor, or the fixed factor without global_grad_scale_adaptive and loss_scale.
std::optional<LossScaleOptions> LossScaleOf(const SolverSpec& spec, bool needs);

}  // namespace trainer

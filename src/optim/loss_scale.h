#pragma once
// Decides whether a run scales its loss, and how.

#include <optional>

#include "loss_scaler.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Returns nullopt if the solver sets no loss_scale and `needs` is false. A net needs a loss scale
// if its gradients have a type with a small range. The initial factor is NVIDIA Caffe's
// global_grad_scale if the net sets it; that factor is fixed if neither global_grad_scale_adaptive
// nor loss_scale is set. A positive loss_scale overrides this: it is the fixed factor.
std::optional<LossScaleOptions> LossScaleOf(const SolverSpec& spec, bool needs);

}  // namespace trainer

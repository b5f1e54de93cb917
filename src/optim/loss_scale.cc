#include "loss_scale.h"

namespace trainer {
std::optional<LossScaleOptions> LossScaleOf(const SolverSpec& spec, bool needs) {
  const caffe::SolverParameter& solver = spec.proto;
  if (!needs && !solver.has_loss_scale()) return std::nullopt;
  LossScaleOptions options;
  options.window = static_cast<uint32_t>(solver.loss_scale_window());
  if (solver.loss_scale() > 0) {
    options.factor = solver.loss_scale();
    options.fixed = true;
    return options;
  }
  const caffe::NetParameter& net = spec.train.net->proto;
  if (net.global_grad_scale() != 1) {
    options.factor = net.global_grad_scale();
    options.fixed = !solver.has_loss_scale() && !net.global_grad_scale_adaptive();
  }
  return options;
}

}  // namespace trainer

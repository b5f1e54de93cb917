#include "trainer/steps/loss_scale.h"

#include "trainer/base/text.h"

namespace trainer {
namespace {

// Another process makes the update, and knows nothing of this one's factor.
void RefuseServers(const SolverSpec& spec) {
  if (spec.proto.strategy() != "parameter_server") return;
  const bool given = spec.proto.has_loss_scale();
  spec.Fail("strategy",
            Join("strategy is parameter_server, and ",
                 given ? "loss_scale is given" : "gradients in FLOAT16 take a loss scale",
                 ": servers would get scaled gradients; take another strategy, or ",
                 given ? "remove loss_scale" : "forward_type: BFLOAT16"));
}

}  // namespace

std::optional<LossScaleOptions> LossScaleOf(const SolverSpec& spec, bool needs) {
  const caffe::SolverParameter& solver = spec.proto;
  if (!needs && !solver.has_loss_scale()) return std::nullopt;
  RefuseServers(spec);
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

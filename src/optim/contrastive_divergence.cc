#include <utility>

#include "trainer/base/text/text.h"
#include "trainer/optim/first_order.h"
#include "update_rule.h"

namespace trainer {
namespace {

// Returns true for an RBM layer whose second top has a loss_weight, which learns by contrastive
// divergence (src/layers/rbm/rbm.cc).
bool LearnsFromChains(const LayerSpec& layer) {
  return layer.type() == "RBM" && layer.proto().loss_weight_size() > 1 &&
         layer.proto().loss_weight(1) != 0;
}

// Contrastive divergence: SGD with momentum and weight decay. The RBM layer computes the gradient
// from the Gibbs chains that cd_param describes, in one evaluation.
class ContrastiveDivergenceOptimizer final : public FirstOrderOptimizer {
 public:
  // Throws kConfig for fields of cd_param out of range or in contradiction.
  explicit ContrastiveDivergenceOptimizer(const SolverSpec& spec)
      : FirstOrderOptimizer(spec, UpdateRuleRegistry::Get().Make("SGD", spec)) {
    const caffe::ContrastiveDivergenceParameter& param = spec.proto.cd_param();
    const auto fail = [&](const auto&... text) {
      spec.Fail("cd_param", Join("cd_param: ", text...));
    };
    if (param.steps() < 1) fail("steps is ", param.steps(), "; a chain needs at least 1 step");
    if (param.chains() < 0) fail("chains is ", param.chains(), "; it must be 0 or more");
    if (param.chains() > 0 && !param.persistent()) {
      fail(
          "chains is given without persistent: true, but only persistent chains have a number; "
          "remove chains, or add persistent: true");
    }
    if (!(param.sparsity_target() >= 0 && param.sparsity_target() < 1)) {
      fail("sparsity_target is ", param.sparsity_target(),
           "; it must be the target mean of the hidden units, above 0 and below 1, or 0 for no "
           "target");
    }
    if (!(param.sparsity_cost() >= 0)) {
      fail("sparsity_cost is ", param.sparsity_cost(), "; it must be 0 or more");
    }
    if (!(param.sparsity_decay() >= 0 && param.sparsity_decay() < 1)) {
      fail("sparsity_decay is ", param.sparsity_decay(), "; it must be at least 0 and below 1");
    }
  }

  void ConfigureCompile(NetOptions& options) const override {
    const caffe::ContrastiveDivergenceParameter& param = spec().proto.cd_param();
    options.chain = {.steps = param.steps(),
                     .persistent = param.persistent(),
                     .chains = param.chains(),
                     .sparsity_target = param.sparsity_target(),
                     .sparsity_cost = param.sparsity_cost(),
                     .sparsity_decay = param.sparsity_decay()};
  }

  // Throws kConfig if no RBM layer of the net learns by contrastive divergence.
  void Prepare(Objective& objective, NoteHandler on_note) override {
    const Net& net = objective.net();
    int learning = 0;
    for (const Node& node : net.graph().nodes) {
      learning += LearnsFromChains(node.spec) && node.has_backward ? 1 : 0;
    }
    if (learning == 0) {
      spec().Fail(
          "type",
          "type is CD, but no RBM layer of the training net learns with it; give an RBM layer a "
          "second top with a loss_weight (loss_weight: 0 loss_weight: 1) and an lr_mult above 0");
    }
    FirstOrderOptimizer::Prepare(objective, std::move(on_note));
  }
};

const RegisterOptimizer<ContrastiveDivergenceOptimizer> kContrastiveDivergence("CD");

}  // namespace
}  // namespace trainer

#include "trainer/strategies/strategy.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string NameOf(const SolverSpec& spec) {
  return Join("strategy '", spec.proto.strategy(), "'");
}

// Returns why a BatchNorm cannot be synchronized with a strategy that needs own batches or steps.
std::string WhyOwnMoments(const SolverSpec& spec) {
  return Join(", but with ", NameOf(spec), " a rank does not know the batches of other ranks");
}

// Throws kConfig for settings that divide batches, because with a partitioned net all ranks work on
// the same batch.
void RequireWholeBatches(const SolverSpec& spec) {
  if (spec.proto.virtual_ranks() > 1) {
    spec.Fail(
        "virtual_ranks",
        Join("virtual_ranks is ", spec.proto.virtual_ranks(), ", but with ", NameOf(spec),
             " all ranks work on one batch; set virtual_ranks: 1, or strategy: \"synchronous\""));
  }
  RequireOwnMoments(spec, WhyOwnMoments(spec));
}

// Throws kConfig for settings that need all ranks to make each step together, or one set of
// weights.
void RequireOwnSteps(const SolverSpec& spec) {
  const caffe::SolverParameter& solver = spec.proto;
  const std::string name = NameOf(spec);
  if (solver.virtual_ranks() > 1) {
    spec.Fail("virtual_ranks",
              Join("virtual_ranks is ", solver.virtual_ranks(), ", but with ", name,
                   " each rank takes its own steps, so ranks do not share batches; set "
                   "virtual_ranks: 1, or strategy: \"synchronous\""));
  }
  if (solver.lr_policy() == "plateau") {
    spec.Fail("lr_policy",
              Join("lr_policy 'plateau' follows the loss of all ranks, but with ", name,
                   " each rank knows only its own; use another policy, or strategy: "
                   "\"synchronous\""));
  }
  if (solver.ema_decay() > 0) {
    spec.Fail("ema_decay", Join("ema_decay is ", solver.ema_decay(), ", but with ", name,
                                " tests and snapshots already use the common weights of all ranks; "
                                "remove one of the two"));
  }
  RequireOwnMoments(spec, WhyOwnMoments(spec));
}

}  // namespace

void RequireOwnMoments(const SolverSpec& spec, const std::string& why) {
  for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
    if (!layer.proto().batch_norm_param().synchronized()) continue;
    layer.FailIn("batch_norm_param", "synchronized",
                 Join("synchronized is true", why, "; remove one of the two"));
  }
}

Strategy::Requests Strategy::Agree(const Requests& own) {
  if (context_ == nullptr) return own;
  float sums[] = {own.stop ? 1.0f : 0.0f, own.snapshot ? 1.0f : 0.0f};
  context_->group.AllReduce(sums);
  return {sums[0] > 0, sums[1] > 0};
}

void Strategy::EnterConsensus() {
  const std::span<const float> consensus = Consensus();
  if (consensus.empty()) return;
  const std::span<float> weights = context_->objective.Weights();
  own_weights_.resize(weights.size());
  context_->device.CopyToHost(own_weights_.data(), weights.data(), weights.size_bytes());
  context_->device.CopyToDevice(weights.data(), consensus.data(), weights.size_bytes());
}

void Strategy::LeaveConsensus() {
  if (own_weights_.empty()) return;
  context_->device.CopyToDevice(context_->objective.Weights().data(), own_weights_.data(),
                                own_weights_.size() * sizeof(float));
  own_weights_.clear();
}

std::unique_ptr<Strategy> MakeStrategy(const SolverSpec& spec, int ranks) {
  const StrategyRegistry& registry = StrategyRegistry::Get();
  const std::string& name = spec.proto.strategy();
  if (!registry.Has(name)) {
    spec.Fail("strategy", Join("unknown strategy '", EscapeControl(name), "'.",
                               DidYouMean(name, registry.Names()), " It is one of ",
                               JoinList(registry.Names())));
  }
  std::unique_ptr<Strategy> strategy = registry.Make(name, spec);
  if (!strategy->traits().synchronous) RequireOwnSteps(spec);
  if (strategy->pipeline() != nullptr) RequireWholeBatches(spec);
  return ranks > 1 ? std::move(strategy) : registry.Make("synchronous", spec);
}

}  // namespace trainer

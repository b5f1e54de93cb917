#include "trainer/strategies/strategy.h"

#include "trainer/base/text.h"

namespace trainer {
namespace {

// What is a matter of one step of all ranks, or of one set of weights.
void RequireOwnSteps(const SolverSpec& spec) {
  const caffe::SolverParameter& solver = spec.proto;
  const std::string name = Join("strategy '", solver.strategy(), "'");
  if (solver.virtual_ranks() > 1) {
    spec.Fail("virtual_ranks",
              Join("virtual_ranks is ", solver.virtual_ranks(), ", but with ", name,
                   " each rank makes steps of its own, so that no batch is one of all; set "
                   "virtual_ranks: 1, or strategy: \"synchronous\""));
  }
  if (solver.ema_decay() > 0) {
    spec.Fail("ema_decay", Join("ema_decay is ", solver.ema_decay(), ", but with ", name,
                                " tests and snapshots already take what the weights of all ranks "
                                "have in common; remove one of the two"));
  }
  for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
    if (!layer.proto().batch_norm_param().synchronized()) continue;
    layer.FailIn("batch_norm_param", "synchronized",
                 Join("synchronized is true, but with ", name,
                      " the batches of other ranks are not known; remove one of the two"));
  }
}

}  // namespace

std::unique_ptr<Strategy> MakeStrategy(const SolverSpec& spec, int ranks) {
  const StrategyRegistry& registry = StrategyRegistry::Get();
  const std::string& name = spec.proto.strategy();
  if (!registry.Has(name)) {
    spec.Fail("strategy", Join("unknown strategy '", EscapeControl(name), "'.",
                               DidYouMean(name, registry.Names()), " It is one of ",
                               JoinList(registry.Names())));
  }
  std::unique_ptr<Strategy> strategy = registry.Make(name, spec);
  if (!strategy->StepsTogether()) RequireOwnSteps(spec);
  return ranks > 1 ? std::move(strategy) : registry.Make("synchronous", spec);
}

}  // namespace trainer

#include "trainer/optim/optimizer.h"

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/optim/first_order.h"
#include "update_rule.h"

namespace trainer {

void Optimizer::LoadRecord(const std::string& state) {
  if (state.empty()) return;
  throw Error(ErrorCode::kBadSnapshot,
              Join("the snapshot has ", state.size(),
                   " bytes of the state of another solver type; resume with the solver type of "
                   "that run, or start from its weights with --weights"));
}

std::unique_ptr<Optimizer> MakeOptimizer(const SolverSpec& spec) {
  const OptimizerRegistry& registry = OptimizerRegistry::Get();
  const std::string& type = spec.proto.type();
  std::unique_ptr<Optimizer> rule =
      registry.Has(type) ? registry.Make(type, spec) : std::make_unique<FirstOrderOptimizer>(spec);
  if (rule->Reevaluates() && spec.proto.iter_size() > 1) {
    spec.Fail("iter_size", Join("iter_size is ", spec.proto.iter_size(), ", but ", type,
                                " evaluates each batch more than once, which is impossible with "
                                "several passes per batch; set iter_size: 1 and a larger batch"));
  }
  if (rule->Reevaluates() && spec.proto.virtual_ranks() > 1) {
    spec.Fail("virtual_ranks", Join("virtual_ranks is ", spec.proto.virtual_ranks(), ", but ", type,
                                    " evaluates each batch more than once, which is impossible "
                                    "with several parts per batch; set virtual_ranks: 1"));
  }
  return rule;
}

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names = UpdateRuleRegistry::Get().Names();
  for (const std::string& name : OptimizerRegistry::Get().Names()) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace trainer

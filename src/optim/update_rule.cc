#include "update_rule.h"

#include <algorithm>

namespace trainer {

void RefuseMomentum(const SolverSpec& spec, std::string_view type) {
  if (spec.proto.momentum_policy() != "fixed") {
    spec.Fail("momentum_policy", Join("momentum_policy is '", spec.proto.momentum_policy(),
                                      "', but ", type, " has no momentum; remove the line"));
  }
  if (spec.proto.momentum() == 0) return;
  spec.Fail("momentum", Join("momentum is ", spec.proto.momentum(), ", but ", type,
                             " has no momentum; remove the line"));
}

void RefuseL1(const SolverSpec& spec, std::string_view type) {
  if (spec.proto.regularization_type() != "L1") return;
  spec.Fail("regularization_type", Join("regularization_type is L1, but ", type,
                                        " supports L2 only; write \"L2\" or use type SGD"));
}

std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverSpec& spec,
                                           const std::vector<std::string>& others) {
  const std::string& type = spec.proto.type();
  const UpdateRuleRegistry& registry = UpdateRuleRegistry::Get();
  if (!registry.Has(type)) {
    std::vector<std::string> known = registry.Names();
    known.insert(known.end(), others.begin(), others.end());
    std::ranges::sort(known);
    spec.Fail("type", Join("unknown solver type '", type, "'.", DidYouMean(type, known),
                           " Known types: ", JoinList(known)));
  }
  return registry.Make(type, spec);
}

}  // namespace trainer

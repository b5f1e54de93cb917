#include "trainer/rules/rule.h"

namespace trainer {

void RefuseMomentum(const SolverSpec& spec, std::string_view type) {
  if (spec.proto.momentum() == 0) return;
  spec.Fail("momentum", Join("momentum is ", spec.proto.momentum(), ", but ", type,
                             " has none; remove the line"));
}

std::unique_ptr<Rule> MakeRule(const SolverSpec& spec) {
  const std::string& type = spec.proto.type();
  const RuleRegistry& registry = RuleRegistry::Get();
  if (!registry.Has(type)) {
    const std::vector<std::string> known = registry.Names();
    spec.Fail("type", Join("unknown solver type '", type, "'.", DidYouMean(type, known),
                           " Known types: ", JoinList(known)));
  }
  return registry.Make(type, spec);
}

}  // namespace trainer

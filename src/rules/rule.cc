#include "trainer/rules/rule.h"

#include "trainer/base/text.h"

namespace trainer {

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

#pragma once
// The formulas of the update rules.

#include <string>
#include <string_view>

namespace trainer {

// Returns the formula of the rule, the fields that it reads, and its publication. Throws kInternal
// for a rule without a text.
std::string_view RuleText(const std::string& rule);

}  // namespace trainer

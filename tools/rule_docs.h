#pragma once
// The texts about update rules that `trainer solver` prints.

#include <string>
#include <string_view>

namespace trainer {

// The formula of the rule, the fields that it reads and its source. Throws kInternal for a rule
// without a text.
std::string_view RuleText(const std::string& rule);

}  // namespace trainer

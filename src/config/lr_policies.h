#pragma once
// The policies of the learning rate, and the fields that each policy needs.

#include <map>
#include <string>
#include <vector>

namespace trainer {

// A field that a policy needs, with an example of its value.
struct PolicyField {
  const char *name, *example;
};

struct LrPolicy {
  std::vector<PolicyField> needs;
  const char* does = "";  // what the policy does with the rate, if it needs a field
};

// Returns the policies by name.
const std::map<std::string, LrPolicy>& LrPolicies();

}  // namespace trainer

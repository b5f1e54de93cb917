#pragma once
// Several values of one assignment of --set.

#include <string>
#include <vector>

namespace trainer {

// The assignments that one stands for whose value is a list: "base_lr=0.1,0.01" for "base_lr=0.1"
// and "base_lr=0.01". Commas in brackets and quotes divide nothing: "stepvalue=[100,200],[300]".
// Throws kUsage for an empty item of a list; what is not key=value is left as it is.
std::vector<std::string> Alternatives(const std::string& assignment);

}  // namespace trainer

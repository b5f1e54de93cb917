#pragma once
// Lists of values in one assignment of --set.

#include <string>
#include <vector>

namespace trainer {

// Returns one assignment for each value of a list: "base_lr=0.1,0.01" becomes "base_lr=0.1" and
// "base_lr=0.01". Commas in brackets and quotes do not separate values:
// "stepvalue=[100,200],[300]". Throws kUsage for an empty item of a list; a text that is not
// key=value is returned unchanged.
std::vector<std::string> Alternatives(const std::string& assignment);

}  // namespace trainer

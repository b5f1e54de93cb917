#pragma once
// A command line again, of the flags that were understood.

#include <span>
#include <string>
#include <vector>

#include "flags.h"

namespace trainer {

// The flags of `table` that have another value than without being given: "--gpu=0", "--ranks=2".
// Those of kEach are left out.
std::vector<std::string> GivenFlags(std::span<const Flag> table, const Flags& flags);

}  // namespace trainer

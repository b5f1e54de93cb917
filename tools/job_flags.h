#pragma once
// Flags of the verbs that print batch scripts: `job` and `sweep`.

#include <span>
#include <string_view>
#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

Flag CoresFlag();
Flag ArrayLimitFlag();

// Returns the flags of `train` except those in `without`. A script passes them to its run.
std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without);

}  // namespace trainer

#pragma once
// The flags that every verb has.

#include <span>

#include "trainer/cli/flag_set.h"

namespace trainer {

// Returns the flags of glog, --color, and --flagfile, --fromenv and --tryfromenv of gflags.
std::span<const Flag> CommonFlags();

// Hands the values of glog's flags and --color on. Call it before InitLogging. Throws kUsage for a
// value that glog rejects.
void ApplyCommonFlags(const Flags& flags);

}  // namespace trainer

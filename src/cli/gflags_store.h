#pragma once
// Stores flags in gflags, and expands flags that name files and environment variables.

#include <span>
#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

// Registers each flag with gflags, once per process and as text, and stores its value there. Flags
// that gflags has already, such as glog's, are left to ApplyCommonFlags.
void StoreInGflags(std::span<const Flag> table, const Flags& values);

// Replaces --flagfile=FILE by the flags in FILE, and --fromenv=NAMES and --tryfromenv=NAMES by the
// values of the environment variables FLAGS_<name>, in their places. In a file, a line that begins
// with '-' is one flag, '#' begins a comment, and any other line names the programs that the flags
// below it are for ("trainer", "*"). Throws kUsage or kNoInput for what cannot be read.
std::vector<std::string> ExpandFlagFiles(const std::vector<std::string>& arguments);

}  // namespace trainer

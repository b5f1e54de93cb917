#pragma once
// Flags of the verbs that read data sets.

#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

std::vector<Flag> WithReadingFlags(std::vector<Flag> flags);

// Tells the readers of data what they say. Before anything is opened.
void ApplyReadingFlags(const Flags& flags);

}  // namespace trainer

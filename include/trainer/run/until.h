#pragma once
// Where a run ends that is to be continued later: --until.

#include <string>

namespace trainer {

// Returns the iteration that `until` names for a run of `max_iter` iterations: a number such as
// "1000", or a share such as "1/9", rounded down but at least 1. Returns 0 for "". Throws kUsage
// for any other text.
int UntilIter(const std::string& until, int max_iter);

}  // namespace trainer

#pragma once
// Prints the profile of a net: as Caffe's log lines, as tables, as JSON.

#include <string>

#include "trainer/analysis/timing/net_profile.h"
#include "trainer/base/text/json.h"

namespace trainer {

// Logs the lines of `caffe time` that readers of Caffe's log search for.
void LogProfile(const NetProfile& profile);

// Returns the tables for people. With `declined`, also the implementations that were not chosen,
// and why.
std::string ToText(const NetProfile& profile, bool declined = false);

// Returns all figures for programs. A rate is null if no work is counted or no time was measured.
Json ToJson(const NetProfile& profile);

}  // namespace trainer

#pragma once
// Which trial of a random search is trained next.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "search/trial_state.h"

namespace trainer {

// The last stage of a trial, which trains to the end.
inline constexpr char kWholeRun[] = "1";

// Returns the shares of its iterations until which a trial trains: "1/9", "1/3" and kWholeRun, or
// only kWholeRun.
std::vector<std::string> StagesOf(bool stops_early);

// Returns the indices in `states` of the trials that may be trained now, those to take first in
// front: trials that may continue, from the last of `stages` stages to the first, then new trials
// in the order of their numbers. A trial may continue if it is among the best third, rounded down,
// of all trials that finished its stage; of equal ones the first numbers count as better.
std::vector<size_t> NextTrials(std::span<const TrialState> states, size_t stages);

}  // namespace trainer

#pragma once
// The sets of CPUs on which the ranks of a node may run.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

using CoreSet = std::array<uint64_t, 16>;  // one bit per CPU; further CPUs are left out

CoreSet OwnCores();
void RunOn(const CoreSet& cores);  // this process, where the system allows it

// As many sets of equal size, none with a core of another; empty where there are fewer cores.
std::vector<CoreSet> SplitCores(const CoreSet& cores, int ranks);

// How many of the ranks, this one included, may run on a core of rank `own`.
int RanksOnCoresOf(const std::vector<CoreSet>& of_ranks, int own);

// A warning, with what to do, if ranks share too few cores; else "". `ranks` are their numbers.
std::string OversubscriptionWarning(const std::vector<CoreSet>& of_ranks,
                                    const std::vector<int>& ranks);
// The same for the CPU time that the control group allows them together, in CPUs; 0: no limit.
std::string QuotaWarning(int quota, int ranks);

}  // namespace trainer

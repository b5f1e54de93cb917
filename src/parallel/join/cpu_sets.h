#pragma once
// The sets of CPUs on which the ranks of a node may run.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

using CoreSet = std::array<uint64_t, 16>;  // one bit per CPU; CPUs from 1024 on are left out

// Returns the CPUs on which this process may run; none if the system does not say.
CoreSet OwnCores();
// Binds the calling process to `cores`. Has no effect if the system does not permit it.
void RunOn(const CoreSet& cores);

// Splits `cores` into one set per rank, disjoint, of equal size and of neighbouring cores; a
// remainder is not used. Returns no sets if there are fewer cores than ranks.
std::vector<CoreSet> SplitCores(const CoreSet& cores, int ranks);

// Returns how many ranks, including rank `own`, may run on a core of rank `own`.
int RanksOnCoresOf(const std::vector<CoreSet>& of_ranks, int own);

// Returns a warning, with what to do, if ranks share too few cores; else "". `ranks` has the
// numbers of the ranks.
std::string OversubscriptionWarning(const std::vector<CoreSet>& of_ranks,
                                    const std::vector<int>& ranks);
// Returns a warning if the control group allows all ranks together less CPU time than one CPU each;
// else "". `quota` is in CPUs; 0: no limit.
std::string QuotaWarning(int quota, int ranks);

}  // namespace trainer

#pragma once
// Helpers that `trainer job` and `trainer sweep --system` share for writing batch scripts.

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/config/solver_spec.h"
#include "trainer/run/jobs/job_script.h"

namespace trainer {

// The name of the solver's folder ("net" for "models/net/solver.prototxt") or, without a folder, of
// the solver. Consists of letters, digits, '_' and '-'.
std::string JobName(const std::string& solver);

// Reads --time. Throws kUsage for less than a minute and for text that is not a time.
std::chrono::seconds SlotTime(const std::string& text);

// The flags that `trainer job` and `trainer sweep --system=slurm` have for arrays and cores.
Flag CoresFlag();
Flag ArrayLimitFlag();

// The flags of `train` but for those that `without` names: a script hands them to its run.
std::vector<Flag> FlagsOfTrain(std::span<const std::string_view> without);

// The cores of the largest node of Slurm's partition ("": of all), by sinfo; 0 where sinfo does not
// answer.
int CoresOfLargestNode(const std::string& partition);

// How many seconds before the end of a slot the queue shall tell a run to stop whose snapshot takes
// `snapshot` seconds: the time of two snapshots, because one may be in progress already, and of an
// iteration. A minute is better where the slot is long; it is at most an eighth of the slot.
int WarningSeconds(std::chrono::seconds slot, double snapshot);

// Sets the cores (if the request has 0), the memory and the time for the last snapshot from the
// plan of the solver's nets. `processes`: how many processes of the program one task starts. Where
// the folder of the snapshots is there, writes a file in it and removes the file again, to measure
// the file system. Throws kUsage for more cores than a node has, and as AtomicFile does.
void FitToNet(const SolverSpec& spec, JobSpec* job, int processes = 1);

}  // namespace trainer

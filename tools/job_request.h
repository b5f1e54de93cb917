#pragma once
// What batch scripts of single runs and of sweeps ask for.

#include <string>

#include "job_scripts.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// A word of the shell, in quotes where it needs them.
std::string ShellWord(const std::string& text);

// "net" of "models/net/solver.prototxt"; of a solver without a folder its own name.
std::string JobName(const std::string& solver);

// --time as both systems read it. Throws kUsage for less than a minute and for what is no time.
std::string SlotTime(const std::string& text);

// Cores (where the request has none), memory and the time for a last snapshot, by the plan of the
// solver's nets. `processes`: of the program on a node, where one task starts several.
void FitToNet(const SolverSpec& spec, JobRequest* job, int processes = 1);

}  // namespace trainer

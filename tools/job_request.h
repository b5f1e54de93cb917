#pragma once
// Helpers that `trainer job` and `trainer sweep --system` share for writing batch scripts.

#include <string>

#include "job_scripts.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Quotes `text` as one word of the shell, in single quotes if it needs them. Throws kUsage for
// control characters, so that the word fits into a comment or an #SBATCH line.
std::string ShellWord(const std::string& text);

// The name of the solver's folder ("net" for "models/net/solver.prototxt") or, without a folder, of
// the solver. Consists of letters, digits, '_' and '-'.
std::string JobName(const std::string& solver);

// Returns --time in the form that Slurm and PBS read. Throws kUsage for less than a minute and for
// text that is not a time.
std::string SlotTime(const std::string& text);

// Sets the cores (if the request has 0), the memory and the time for the last snapshot from the
// plan of the solver's nets. `processes`: how many processes of the program one task starts.
void FitToNet(const SolverSpec& spec, JobRequest* job, int processes = 1);

}  // namespace trainer

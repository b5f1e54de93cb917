#pragma once
// Where a run starts: at the beginning, from weights, or from a snapshot.

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The values of the flags with the same names.
struct StartOptions {
  std::string snapshot = "";   // a .solverstate
  std::string resume = "";     // "auto"
  std::string weights = "";    // .caffemodel files, separated by commas
  bool allow_outside = false;  // load a snapshot's weights from another folder

  bool Resumes() const { return !resume.empty(); }
};

// Throws kUsage for options that name two starts.
void RequireOneStart(const StartOptions& options);

// Returns the weights to start from; the weights of the options replace the solver's.
std::vector<std::string> WeightFiles(const StartOptions& options, const SolverSpec& spec);

struct ResumePoint {
  std::string state;  // the .solverstate; "": the run starts at the beginning
  int iter = 0;       // known with --resume only
};

// Returns the snapshot that --snapshot names. With --resume=auto finds the newest one by the
// solver's snapshot_prefix or in `rescue_folders`, and logs it. Throws as NewestSnapshot does.
ResumePoint FindResumePoint(const StartOptions& options, const SolverSpec& spec,
                            const std::vector<std::string>& rescue_folders);

}  // namespace trainer

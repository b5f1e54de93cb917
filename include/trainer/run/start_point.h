#pragma once
// Where a run starts: at the beginning, from weights, or from a snapshot.

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// The values of the flags with the same names.
struct StartOptions {
  std::string snapshot = "";   // a .solverstate
  std::string resume = "";     // "auto", or a .solverstate
  std::string weights = "";    // .caffemodel files, separated by commas
  std::string reset = "";      // layers, separated by commas, or one NamePattern
  bool allow_outside = false;  // load a snapshot's weights from another folder

  // Returns whether the run continues from the newest snapshot.
  bool Resumes() const { return resume == "auto"; }
  // Returns the .solverstate that the user names, or "".
  const std::string& NamedState() const {
    return snapshot.empty() && !Resumes() ? resume : snapshot;
  }
};

// Throws kUsage for options that name two starts, and for --resume with something else than "auto"
// or a .solverstate.
void RequireOneStart(const StartOptions& options);

// Returns the files of weights to start from: the list of --weights or, without the flag, the
// solver's list. Packs are opened, see UsePack.
std::vector<std::string> WeightFiles(const StartOptions& options, const SolverSpec& spec);

// Returns the layers of --reset: names, or a single NamePattern. Throws kUsage if there are no
// `weights` files.
std::vector<std::string> ResetLayers(const StartOptions& options,
                                     const std::vector<std::string>& weights);

// The snapshot that a run resumes from.
struct ResumePoint {
  std::string state;  // the .solverstate; "": the run starts at the beginning
  int iter = 0;       // known with --resume only
};

// Returns the snapshot that --snapshot or --resume names. With --resume=auto, returns the one with
// the highest iteration among the solver's snapshot_prefix and `rescue_folders`, and logs it; an
// empty state if there is none. Throws as NewestSnapshot does, unless a rescued snapshot can be
// used.
ResumePoint FindResumePoint(const StartOptions& options, const SolverSpec& spec,
                            const std::vector<std::string>& rescue_folders);

}  // namespace trainer

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Names a net and its weights, a pack of both, or a run.
struct EvaluationTargetOptions {
  NetSource model = {};                   // without a file for a run, whose solver it changes then
  std::vector<std::string> weights = {};  // of a run: instead of its own
  std::string run = "";                   // folder
};

// The test net and the weights to evaluate.
struct EvaluationTarget {
  std::optional<NetSpec> model;
  std::optional<SolverSpec> solver;  // of a run, instead of `model`
  caffe::NetState state;
  std::vector<std::string> weights;
  std::string file;         // of the net or the solver, for messages
  std::string run;          // folder of the run, or ""
  std::string class_names;  // of a pack that has them, for ReadClassNames; or ""

  // Returns the net to evaluate; of a run, its first test net.
  const NetSpec& net() const { return model ? *model : *solver->tests[0].net; }
};

// Reads the net or the run that the options name. For a run, chooses its test net with the weights
// of its best test, or with the newest weights if the run did not keep them. Throws kUsage if
// options are missing or contradict each other, kNoInput if the folder is not a run or the run has
// no snapshot, kConfig if the run has no test net, and as RequireFiles, LoadNet, UsePack and
// LoadSolver.
EvaluationTarget ResolveEvaluationTarget(const EvaluationTargetOptions& options);

}  // namespace trainer

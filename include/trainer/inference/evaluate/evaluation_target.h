#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Names what to evaluate: a net and its weights, a pack of both, or a run.
struct EvaluationTargetOptions {
  NetSource model = {};                   // for a run: no file, only changes of the solver
  std::vector<std::string> weights = {};  // for a run, replaces the run's weights
  std::string run = "";                   // folder of the run
};

// Holds the test net and the weights to evaluate.
struct EvaluationTarget {
  std::optional<NetSpec> model;
  std::optional<SolverSpec> solver;  // set for a run, instead of `model`
  caffe::NetState state;
  std::vector<std::string> weights;
  std::string file;         // file of the net or the solver, for messages
  std::string run;          // folder of the run, or ""
  std::string class_names;  // class names in a pack, for ReadClassNames; or ""

  // Returns the net to evaluate. For a run, returns its first test net.
  const NetSpec& net() const { return model ? *model : *solver->tests[0].net; }
};

// Reads the net or the run that the options name. For a run, chooses its test net and the weights
// of its best test, or the newest weights if the run did not keep the best ones. Throws kUsage if
// options are missing or contradict each other, kNoInput if the folder is not a run or the run has
// no snapshot, kConfig if the run has no test net, and as RequireFiles, LoadNet, UsePack and
// LoadSolver do.
EvaluationTarget ResolveEvaluationTarget(const EvaluationTargetOptions& options);

}  // namespace trainer

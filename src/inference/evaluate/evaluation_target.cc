#include "trainer/inference/evaluate/evaluation_target.h"

#include <glog/logging.h>

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_state.h"
#include "trainer/config/overrides.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {
namespace {

// Returns a path that the run recorded, relative to the folder in which the run was started if it
// does not exist here.
std::string ResolveRunPath(const std::string& folder, const std::string& name) {
  if (name.empty() || Exists(name)) return name;
  return JoinPath(RunDirectory(folder).ReadInfo().folder, name);
}

// Returns the weights of the best test if the run kept them, else the newest weights, with a
// warning. Throws kNoInput if the run has no snapshot.
std::string ChooseWeights(const std::string& folder) {
  const RunMetrics history = ReadRunMetrics(folder);
  if (history.weights.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                "this run has not saved a snapshot yet; give the weights with --weights=FILE");
  }
  const auto& [newest_iter, newest] = history.weights.back();
  const std::optional<BestTest> best = BestTestOf(history, BestOutputOf(folder));
  if (!best) return ResolveRunPath(folder, newest);
  const std::string what = Join("the best test of the run, ", best->output, " ",
                                static_cast<float>(best->value), " at iteration ", best->iter);
  const std::string file = ResolveRunPath(folder, best->weights);
  if (!file.empty() && Exists(file)) {
    LOG(INFO) << EscapeControl(Join("Testing the weights of ", what, ": ", file));
    return file;
  }
  LOG(WARNING) << EscapeControl(
      Join("there is no snapshot of ", what, "; testing the newest one instead, of iteration ",
           newest_iter, " (to keep the best: set keep_best: 1, with a snapshot at each test)"));
  return ResolveRunPath(folder, newest);
}

// Reads the solver of the run. Weights that the user gives replace the run's.
EvaluationTarget TargetOfRun(const EvaluationTargetOptions& options) {
  EvaluationTarget target;
  target.run = options.run;
  if (!options.model.file.empty()) {
    throw Error(ErrorCode::kUsage,
                "--run and --model cannot both be given: both name a net; leave one of them out");
  }
  target.weights = options.weights;
  if (target.weights.empty()) target.weights = {ChooseWeights(target.run)};
  RequireFiles(target.weights);
  target.file = JoinPath(target.run, kSolverName);
  Overrides overrides(options.model.set);
  target.solver = LoadSolver(target.file, options.model.state, &overrides);
  if (target.solver->tests.empty()) {
    throw Error(ErrorCode::kConfig, {target.file},
                "this run has no test net: its solver has no test_iter, or its tests were turned "
                "off. Give --model and --weights instead of --run");
  }
  target.state = target.solver->tests[0].state;
  return target;
}

// Reads the net of --model. Throws kUsage unless both --model and --weights are given.
EvaluationTarget TargetOfFiles(const EvaluationTargetOptions& options) {
  for (const auto& [flag, is_given] : {std::pair("model", !options.model.file.empty()),
                                       std::pair("weights", !options.weights.empty())}) {
    if (is_given) continue;
    throw Error(ErrorCode::kUsage,
                Join("'trainer test' needs --", flag,
                     "=FILE, or --run=DIR for the test net and the best weights of a run"));
  }
  EvaluationTarget target;
  target.weights = options.weights;
  RequireFiles(target.weights);
  target.file = options.model.file;
  target.model = LoadNet(options.model);
  target.state = MakeNetState(caffe::TEST, options.model.state);
  return target;
}

}  // namespace

EvaluationTarget ResolveEvaluationTarget(const EvaluationTargetOptions& options) {
  return options.run.empty() ? TargetOfFiles(options) : TargetOfRun(options);
}

}  // namespace trainer

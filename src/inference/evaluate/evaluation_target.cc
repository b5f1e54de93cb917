#include "trainer/inference/evaluate/evaluation_target.h"

#include <glog/logging.h>

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_state.h"
#include "trainer/config/overrides.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/run_weights.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

// Reads the solver of the run. Weights that the user gives replace the run's.
EvaluationTarget TargetOfRun(const EvaluationTargetOptions& options) {
  EvaluationTarget target;
  target.run = options.run;
  if (!options.model.file.empty()) {
    throw Error(ErrorCode::kUsage,
                "--run and --model cannot both be given: both name a net; leave one of them out");
  }
  target.weights = options.weights;
  UsePack(nullptr, &target.weights);
  if (target.weights.empty()) target.weights = {ChooseRunWeights(target.run, "Testing")};
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

// Warns of losses with class_weight_power, because only training counts the classes and weighs the
// loss. The net of a run already has the weights.
void WarnOfUncountedClasses(const NetSpec& net, const caffe::NetState& state) {
  for (const LayerSpec& layer : FilterLayers(net, state)) {
    if (!layer.proto().loss_param().has_class_weight_power()) continue;
    LOG(WARNING) << EscapeControl(Join(
        layer.WhereIn("loss_param", "class_weight_power").ToString(), ": layer '", layer.name(),
        "' counts all classes equally in this test, because only training counts "
        "the records of the classes; --run=DIR tests with the weights of a run"));
  }
}

// Reads the net of --model. Throws kUsage unless both --model and --weights are given.
EvaluationTarget TargetOfFiles(const EvaluationTargetOptions& options) {
  EvaluationTarget target;
  NetSource model = options.model;
  target.weights = options.weights;
  UsePack(&model, &target.weights, &target.class_names);
  for (const auto& [flag, is_given] :
       {std::pair("model", !model.file.empty()), std::pair("weights", !target.weights.empty())}) {
    if (is_given) continue;
    throw Error(ErrorCode::kUsage,
                Join("'trainer test' needs --", flag,
                     "=FILE, or --run=DIR for the test net and the best weights of a run"));
  }
  RequireFiles(target.weights);
  target.file = model.file;
  target.model = LoadNet(model);
  target.state = MakeNetState(caffe::TEST, model.state);
  WarnOfUncountedClasses(*target.model, target.state);
  return target;
}

}  // namespace

EvaluationTarget ResolveEvaluationTarget(const EvaluationTargetOptions& options) {
  return options.run.empty() ? TargetOfFiles(options) : TargetOfRun(options);
}

}  // namespace trainer

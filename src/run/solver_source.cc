#include "trainer/run/solver_source.h"

#include <algorithm>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the stages that the rules of layers name, in order.
std::vector<std::string> StagesIn(const NetSpec& spec) {
  std::set<std::string> stages;
  for (const LayerSpec& layer : spec.layers) {
    for (const auto* const rules : {&layer.proto().include(), &layer.proto().exclude()}) {
      for (const caffe::NetStateRule& rule : *rules) {
        stages.insert(rule.stage().begin(), rule.stage().end());
        stages.insert(rule.not_stage().begin(), rule.not_stage().end());
      }
    }
  }
  return {stages.begin(), stages.end()};
}

// "a,b", as the flag has it.
std::string Listed(const std::vector<std::string>& stages) {
  std::string text;
  for (const std::string& stage : stages) text += (text.empty() ? "" : ",") + stage;
  return text;
}

}  // namespace

void RequireNamedStage(const std::vector<std::string>& given, const NetSpec& spec) {
  const std::vector<std::string> named = StagesIn(spec);
  if (given.empty() || named.empty()) return;
  const auto is_named = [&](const std::string& stage) {
    return std::ranges::find(named, stage) != named.end();
  };
  if (std::ranges::any_of(given, is_named)) return;
  throw Error(ErrorCode::kUsage, Join("--stage=", EscapeControl(Listed(given)), ": no layer of ",
                                      spec.file, " uses this stage.", DidYouMean(given[0], named),
                                      " The layers use ", EscapeControl(JoinList(named))));
}

SolverSpec ReadSolver(const SolverSource& source) {
  Overrides overrides(source.set);
  SolverSpec spec = LoadSolver(source.file, source.state, &overrides);
  RequireNamedStage(source.state.stages, *spec.train.net);
  return spec;
}

}  // namespace trainer

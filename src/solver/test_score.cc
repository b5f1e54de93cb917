#include "trainer/solver/test_score.h"

#include <algorithm>

#include "trainer/base/lower_case.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

bool Has(const std::vector<std::string>& outputs, const std::string& name) {
  return std::ranges::find(outputs, name) != outputs.end();
}

}  // namespace

const ReportedValue* TestScore::In(const TestReport& report) const {
  if (report.net != 0 || report.interrupted) return nullptr;
  const auto found = std::ranges::find(report.outputs, output, &ReportedValue::name);
  return found == report.outputs.end() ? nullptr : &*found;
}

TestScore ScoreOf(const std::string& best_output, const std::vector<std::string>& outputs) {
  TestScore score;
  score.output = best_output;
  if (best_output.empty()) {
    const bool usual = outputs.empty() || Has(outputs, "accuracy");
    score.output = usual ? "accuracy" : outputs.front();
  }
  score.lower_is_better = LowerCase(score.output).find("loss") != std::string::npos;
  return score;
}

TestScore ScoreFor(const char* field, const SolverSpec& spec,
                   const std::vector<std::string>& outputs) {
  if (spec.tests.empty()) {
    spec.Fail(field, Join(field,
                          " needs tests to compare, and the solver has no test net; give test_iter "
                          "and test_interval, or remove the line"));
  }
  const std::string& wanted = spec.proto.best_output();
  if (!wanted.empty() && !Has(outputs, wanted)) {
    spec.Fail("best_output", Join("the first test net has no output '", EscapeControl(wanted), "'.",
                                  DidYouMean(wanted, outputs), " It has ", JoinList(outputs)));
  }
  return ScoreOf(wanted, outputs);
}

}  // namespace trainer

#include "trainer/monitor/test_score.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "trainer/base/text/lower_case.h"

namespace trainer {

const ReportedValue* TestScore::In(const TestReport& report) const {
  if (report.net != 0 || report.interrupted) return nullptr;
  const auto found = std::ranges::find(report.outputs, output, &ReportedValue::name);
  return found == report.outputs.end() ? nullptr : &*found;
}

std::string ScoredOutput(const caffe::SolverParameter& solver) {
  if (!solver.best_output().empty() || solver.test_metric_size() == 0) return solver.best_output();
  return solver.test_metric(0);
}

TestScore ScoreOf(const std::string& best_output, const std::vector<std::string>& outputs) {
  TestScore score;
  score.output = best_output;
  if (best_output.empty()) {
    const bool usual = outputs.empty() || std::ranges::count(outputs, "accuracy") > 0;
    score.output = usual ? "accuracy" : outputs.front();
  }
  const std::string name = LowerCase(score.output);
  constexpr std::array<std::string_view, 5> kErrors = {"brier", "ece", "mae", "mse", "rmse"};
  score.lower_is_better =
      name.find("loss") != std::string::npos || std::ranges::count(kErrors, name) > 0;
  return score;
}

}  // namespace trainer

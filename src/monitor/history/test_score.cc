#include "trainer/monitor/test_score.h"

#include <algorithm>

#include "trainer/base/text/lower_case.h"

namespace trainer {

const ReportedValue* TestScore::In(const TestReport& report) const {
  if (report.net != 0 || report.interrupted) return nullptr;
  const auto found = std::ranges::find(report.outputs, output, &ReportedValue::name);
  return found == report.outputs.end() ? nullptr : &*found;
}

TestScore ScoreOf(const std::string& best_output, const std::vector<std::string>& outputs) {
  TestScore score;
  score.output = best_output;
  if (best_output.empty()) {
    const bool usual = outputs.empty() || std::ranges::count(outputs, "accuracy") > 0;
    score.output = usual ? "accuracy" : outputs.front();
  }
  score.lower_is_better = LowerCase(score.output).find("loss") != std::string::npos;
  return score;
}

}  // namespace trainer

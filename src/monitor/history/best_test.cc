#include "trainer/monitor/best_test.h"

#include <algorithm>
#include <vector>

#include "solver.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/test_score.h"

namespace trainer {

std::optional<BestTest> BestTestOf(const RunMetrics& history, const std::string& best_output) {
  std::optional<BestTest> best;
  if (history.tests.empty()) return best;
  for (const MetricRow& row : history.tests[0]) {
    if (row.iter == 0) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : row.outputs) names.push_back(name);
    const TestScore score = ScoreOf(best_output, names);
    for (const auto& [name, value] : row.outputs) {
      if (name != score.output) continue;
      const bool better =
          !best || score.Better(static_cast<float>(value), static_cast<float>(best->value));
      if (!better) continue;
      best = BestTest{name, score.lower_is_better, value, static_cast<int64_t>(row.iter), ""};
    }
  }
  for (const auto& [iter, weights] : history.weights) {
    if (best && iter == best->iter) best->weights = weights;
  }
  return best;
}

std::string BestOutputOf(const std::string& folder) {
  caffe::SolverParameter solver;
  try {
    ParseText(JoinPath(folder, kSolverName), &solver);
  } catch (const Error&) {
    return "";
  }
  return ScoredOutput(solver);
}

}  // namespace trainer

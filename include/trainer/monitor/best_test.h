#pragma once
// The best test in the metrics of a run.

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// The best value of an output, and the iteration and weights of that test.
struct BestTest {
  std::string output;
  bool lower_is_better = false;
  double value = 0;
  int64_t iter = 0;
  std::string weights;  // the file that the run saved at that iteration, as it named it, or ""
};

// Returns the best test of the first test net by `best_output`, a field of the solver; see ScoreOf.
// No value without tests. A test at iteration 0 never counts, because the run had trained nothing.
std::optional<BestTest> BestTestOf(const RunMetrics& history, const std::string& best_output);

// Returns the ScoredOutput of the solver in a run's folder; "" if its fields or the file are
// missing.
std::string BestOutputOf(const std::string& folder);

}  // namespace trainer

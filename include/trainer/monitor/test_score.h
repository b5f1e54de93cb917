#pragma once
// The one number that ranks tests: for keep_best, patience, and comparisons of runs.

#include <string>
#include <vector>

#include "solver.pb.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// The output whose values rank tests, and which values are better.
struct TestScore {
  std::string output;  // of the first test net
  bool lower_is_better = false;

  // Returns whether `a` is better than `b`; false if either is not a number.
  bool Better(float a, float b) const { return lower_is_better ? a < b : a > b; }
  // Returns the value of `output` in a report of the first test net. Null if the report is of
  // another net, of a test that was interrupted, or without that output.
  const ReportedValue* In(const TestReport& report) const;
};

// Returns the output that the solver compares tests by: best_output, else its first test_metric; ""
// without both.
std::string ScoredOutput(const caffe::SolverParameter& solver);

// Scores by `best_output` if it is not empty, else by "accuracy", else by the first of `outputs`,
// the outputs of the first test net. The lowest value is the best one of an output with "loss" in
// its name, and of one called brier, ece, mae, mse or rmse.
TestScore ScoreOf(const std::string& best_output, const std::vector<std::string>& outputs);

}  // namespace trainer

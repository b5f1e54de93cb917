#pragma once
// How good a test was, in one number: for keep_best, patience, and whoever compares runs.

#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"
#include "trainer/observe/observer.h"

namespace trainer {

struct TestScore {
  std::string output;  // of the first test net
  bool lower_is_better = false;

  // False for what is not a number.
  bool Better(float a, float b) const { return lower_is_better ? a < b : a > b; }
  // Its value in a report, or null: of another test net, of a test that was interrupted.
  const ReportedValue* In(const TestReport& report) const;
};

// best_output where the solver gives one, else "accuracy", else the first of `outputs`, those of
// the first test net. Of a name with "loss" the lowest value is the best.
TestScore ScoreOf(const std::string& best_output, const std::vector<std::string>& outputs);

// The same, for the solver's field `field`. Throws kConfig at its line where there is no test net,
// and for a best_output that is none of `outputs`.
TestScore ScoreFor(const char* field, const SolverSpec& spec,
                   const std::vector<std::string>& outputs);

}  // namespace trainer
